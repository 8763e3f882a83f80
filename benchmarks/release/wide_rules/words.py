"""The words of the wide rules: small tables that can be read and extended by hand.

As in the lexicon of the other rules, the words of one line of a tree exclude each other, and a name
in brackets is never said.
"""

from __future__ import annotations

from genpool.reproduction.rules import Quantifier
from genpool.reproduction.scenes import Tree, table


def cells(text: str) -> tuple[str, ...]:
    """Returns the entries of a list with commas; of "-", none."""
    return tuple(cell.strip() for cell in text.split(",")) if text not in ("", "-") else ()


# --- People and what they do ---------------------------------------------------------------------

PEOPLE = Tree("""
    person: adult, child; adult: man, woman; child: boy, girl
    musician: guitarist, drummer, pianist, violinist, trumpeter
    athlete: swimmer, boxer, gymnast, skier, tennis player, football player, cyclist
    artist: painter, sculptor; officer: police officer, army officer
""")
#: they are said of the same person as a word of the tree, so no rule opposes them
WORKERS = cells(
    "teacher, doctor, nurse, farmer, student, tourist, soldier, chef, waiter, lawyer, engineer, "
    "singer, dancer, scientist, driver, mechanic, carpenter, reporter, baker, pilot, dentist, judge"
)
ACTIVITIES = cells(
    "wait for a bus, take a picture, talk on the phone, ride a bike, read a map, drink a coffee, "
    "eat a sandwich, stand in line, sit on a bench, listen to music, play cards, walk a dog, "
    "climb a ladder, cross the street, sweep the floor, paint a wall, look at a painting, "
    "wash the dishes, throw a frisbee, fly a kite, play the guitar, cook a meal, watch a game, "
    "dig a hole, push a cart, carry a box, sell ice cream, give a speech, sing a song, "
    "jump over a fence, stand on a ladder, work on a computer, build a fire, plant a tree"
)
PLACES = cells(
    "in the park, at home, at the market, near the river, in front of a shop, on the beach, "
    "at the station, in a crowd, next to a bus stop, at school, at a festival, in the city, "
    "in a large building, behind a fence, in the street"
)
TIMES = cells(
    "in the morning, at night, at noon, in the evening, on a sunny day, during a storm, in winter, "
    "on Sunday, after lunch, before dinner"
)
TRAITS = cells("young, tall, smiling, tired, bearded, thin, elderly, curious, nervous")
BELONGINGS = cells(
    "with a backpack, with glasses, with an umbrella, in a uniform, with a camera, with long hair"
)

# --- Kinds of things -----------------------------------------------------------------------------

THINGS = Tree("""
    [alive]: animal, plant
    animal: dog, cat, horse, bird, fish, cow, pig, rabbit, monkey, elephant, lion, bear, snake, frog
    dog: labrador, bulldog, dachshund, collie; bird: parrot, eagle, owl, pigeon, chicken, penguin
    fish: shark, goldfish, trout; snake: cobra, python; monkey: baboon
    plant: flower, tree, bush; flower: sunflower, orchid, rose, tulip; tree: pine tree, palm tree
    [clothes]: shirt, jacket, dress, skirt, sweater, coat, scarf, hat, tie
    hat: baseball cap, cowboy hat, top hat; dress: wedding dress, evening dress
    coat: raincoat, fur coat; jacket: leather jacket, denim jacket
    vehicle: car, truck, bus, train, motorcycle, bicycle, boat, airplane, tractor, helicopter
    boat: canoe, sailboat, ferry; truck: fire truck, pickup truck; car: police car, race car, taxi
    musical instrument: guitar, piano, violin, drum, trumpet, saxophone, harp, cello
    guitar: electric guitar, bass guitar
    fruit: apple, banana, orange, pear, mango, lemon, pineapple
    meal: pizza, burger, salad, bowl of soup, omelette, sandwich
    sandwich: cheese sandwich, ham sandwich, tuna sandwich
    building: church, school, hospital, hotel, castle, factory, museum, house
    house: cottage, mansion; school: high school, elementary school
    device: computer, phone, camera, television, radio; computer: laptop, tablet
    weapon: gun, sword, bow, spear; gun: rifle, pistol
    tool: hammer, saw, shovel, drill, screwdriver, wrench
    piece of furniture: chair, table, sofa, bed, desk, shelf; bed: bunk bed, hospital bed
    toy: doll, puppet, teddy bear, toy train; [games]: ball, frisbee, racket, bat
    ball: basketball, tennis ball, football, golf ball
""")

#: what is done with things, and with which kinds
USES = {
    verb: cells(kinds)
    for verb, kinds in table(
        """
    feed          | animal
    photograph    | animal, plant, vehicle, building
    look at       | animal, plant, vehicle, building, device, weapon, toy
    stand next to | animal, plant, vehicle, building, piece of furniture
    draw          | animal, plant, vehicle, building
    wash          | [clothes], vehicle, fruit
    fold          | [clothes]
    buy           | [clothes], vehicle, musical instrument, fruit, meal, device, tool, toy
    repair        | vehicle, musical instrument, device, piece of furniture
    play          | musical instrument
    eat           | fruit, meal
    order         | meal
    enter         | building
    paint         | building, piece of furniture
    hold          | fruit, tool, weapon, toy, [games]
    carry         | musical instrument, device, tool, weapon, piece of furniture
    pick up       | fruit, tool, toy, [games], device
    """,
        "|",
    )
}
#: what animals do
HABITS = cells("run across a field, drink water, eat from a bowl, lie in the grass, cross a road")

# --- Colours -------------------------------------------------------------------------------------

COLOURS = Tree("""
    [colours]: red, blue, green, yellow, black, white, brown, pink, purple, orange, grey
    red: bright red, dark red, crimson; blue: dark blue, light blue, navy blue
    green: dark green, light green, olive green; brown: dark brown, light brown
    yellow: bright yellow, pale yellow; pink: bright pink, pale pink; grey: dark grey, light grey
""")
CLOTHES = cells("shirt, jacket, dress, sweater, coat, hat, scarf, vest, hoodie, uniform, cap")
COLOURED_USES = {
    verb: cells(things)
    for verb, things in table(
        """
    ride          | bike, scooter, motorcycle, horse
    drive         | car, truck, van, tractor
    hold          | ball, balloon, umbrella, flag, bag, cup, towel, kite
    carry         | box, bag, bucket, suitcase, chair, guitar
    stand next to | car, truck, door, tent, wall, boat, bench, sign
    sit on        | chair, bench, couch, blanket, motorcycle
    paint         | door, wall, fence, chair, boat
    """,
        "|",
    )
}

# --- Numbers -------------------------------------------------------------------------------------

ENDLESS = 999
NUMBERS = {
    **dict(
        enumerate(
            cells(
                "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, "
                "thirteen, fourteen, fifteen"
            ),
            1,
        )
    ),
    20: "twenty",
    30: "thirty",
    40: "forty",
    50: "fifty",
    100: "one hundred",
}
#: exactly so many
EXACT = (
    *(Quantifier(word, n, n) for n, word in NUMBERS.items()),
    *(Quantifier(str(n), n, n) for n in NUMBERS),
    Quantifier("a pair of", 2, 2),
    Quantifier("a couple of", 2, 2),
    Quantifier("a dozen", 12, 12),
    Quantifier("no", 0, 0),
)
#: many, but nobody says how many
VAGUE = (
    Quantifier("some", 2, ENDLESS),
    Quantifier("several", 3, ENDLESS),
    Quantifier("a group of", 3, ENDLESS),
)
#: anything from so many to so many
RANGES = tuple(
    row
    for n, word in NUMBERS.items()
    if n > 1
    for written in (word, str(n))
    for row in (
        Quantifier(f"at least {written}", n, ENDLESS),
        Quantifier(f"more than {written}", n + 1, ENDLESS),
        Quantifier(f"at most {written}", 0, n),
        Quantifier(f"fewer than {written}", 0, n - 1),
    )
)

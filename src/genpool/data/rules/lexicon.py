"""The words of the generated corpus.

Everything is a small table that can be read and extended by hand. In a tree, the words of one line
are kinds of the word before the colon and exclude each other (an apple is no pear). A name in
brackets only groups words and is never said.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Tree:
    """A taxonomy, read from lines of the form "broad word: narrower word, narrower word"."""

    def __init__(self, text: str) -> None:
        self._parent: dict[str, str] = {}
        self._children: dict[str, list[str]] = {}
        for word, narrower in table(text, ": "):
            self._children[word] = narrower.split(", ")
            self._parent |= dict.fromkeys(self._children[word], word)
        roots = [word for word in self._children if word not in self._parent]
        self.words = [word for root in roots for word in self.under(root)]

    def parent(self, word: str) -> str:
        """Returns the next broader word, or "" if there is none that can be said."""
        parent = self._parent.get(word, "")
        return "" if parent.startswith("[") else parent

    def children(self, word: str) -> list[str]:
        """Returns the words one step narrower."""
        return self._children.get(word, [])

    @cache  # noqa: B019 - the few trees live as long as the program
    def under(self, word: str) -> tuple[str, ...]:
        """Returns the word and all narrower words."""
        below = [narrow for child in self.children(word) for narrow in self.under(child)]
        return tuple(below if word.startswith("[") else [word, *below])

    def rivals(self, word: str) -> list[str]:
        """Returns the words that exclude this one: its sisters or, of an only child, its aunts."""
        if word not in self._parent:
            return []
        sisters = [other for other in self.children(self._parent[word]) if other != word]
        return sisters or self.rivals(self._parent[word])

    def related(self, word: str, other: str) -> bool:
        """Returns whether one is a kind of the other."""
        return word in self.under(other) or other in self.under(word)

    def fits(self, word: str, kinds: tuple[str, ...]) -> bool:
        """Returns whether the word is one of these kinds, narrower or broader."""
        return any(self.related(word, kind) for kind in kinds)

    def common(self, word: str, other: str) -> str:
        """Returns the narrowest word for both, or "" if there is none that can be said."""
        while word and other not in self.under(word):
            word = self.parent(word)
        return word


def table(text: str, separator: str = ", ") -> list[list[str]]:
    """Returns the columns of each row; rows end with a line or a semicolon."""
    lines = filter(str.strip, text.replace(";", "\n").splitlines())
    return [[column.strip() for column in line.split(separator)] for line in lines]


NOUNS = Tree("""
    [living]: person, animal
    person: adult, child; adult: man, woman
    man: policeman, fireman, monk, cowboy
    woman: policewoman, nun, ballerina, waitress
    child: boy, girl; boy: schoolboy; girl: schoolgirl
    animal: dog, cat, horse, bird, goat, cow, sheep
    dog: poodle, beagle, terrier; cat: kitten; horse: pony; bird: duck, goose, swan
    [snacks]: sandwich, cake, piece of fruit
    sandwich: cheese sandwich, ham sandwich; cake: chocolate cake, lemon cake
    piece of fruit: apple, pear, banana, orange, peach
    vegetable: carrot, onion, potato, cucumber
    drink: cup of tea, cup of coffee, glass of milk, glass of juice
    [reading matter]: book, newspaper, magazine, letter; book: novel, cookbook, dictionary
    instrument: guitar, violin, trumpet, flute, accordion
    vehicle: car, truck, bus, motorcycle, bicycle; car: taxi, sports car
    toy: doll, kite, teddy bear, puppet
    piece of furniture: chair, table, bench, bookcase, sofa; chair: armchair, rocking chair
    container: box, bag, basket, bucket
    tool: hammer, saw, shovel, rake
    [growing]: flower, tree; flower: rose, tulip, daisy, lily
    tree: oak tree, apple tree, palm tree
    [round]: ball, stone; [on wheels]: cart, wheelchair, stroller; [openings]: door, window, gate
""")

PLACES = Tree("""
    [anywhere]: inside, outside
    inside: in the kitchen, in the living room, in the garage, in the library, in the basement
    outside: in the park, in the garden, in the forest, in the street, on the beach
    [wet]: in the lake, in the river, in the sea, in the swimming pool
""")

TIMES = Tree("""
    [hours]: in the morning, in the afternoon, at night
    in the morning: early in the morning, late in the morning
    in the afternoon: early in the afternoon, late in the afternoon
    at night: at midnight
    [days]: on the weekend, on a weekday
    on the weekend: on Saturday, on Sunday
    on a weekday: on Monday, on Tuesday, on Wednesday, on Thursday, on Friday
""")

VERBS = Tree("""
    run: sprint, jog; walk: stroll, march, limp; sleep: snore; talk: whisper; laugh: giggle
    cry: sob; eat: devour, nibble; cook: fry, boil; cut: slice, chop; clean: scrub, wipe
    look at: stare at; throw: hurl
""")

# Verbs in one row cannot be done at once by the same one (to the same thing).
EXCLUSIVE = table("""
    run, walk, sit, dance; run, walk, dance, sleep; sprint, jog; stroll, march, limp
    sing, sleep; talk, sleep; laugh, sleep; laugh, cry; fry, boil; devour, nibble; push, pull
    throw, catch; open, close; buy, sell; carry, drag; read, write; lead, follow; fill, empty
""")


class Frame(NamedTuple):
    """Who does it, to what (nothing for "sleep"), and where that makes sense."""

    agents: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[str, ...]


FRAMES = {
    verb: Frame(*(() if cell == "-" else tuple(cell.split(", ")) for cell in cells))
    for verb, *cells in table(
        """
    run        | person, dog, cat, horse  | -                                   | outside
    jog        | person                   | -                                   | outside
    walk       | person, dog, horse, bird | -                                   | outside
    stroll     | person                   | -                                   | outside
    march      | person                   | -                                   | outside
    sit        | person, dog, cat         | -                                   | inside, outside
    sleep      | person, dog, cat         | -                                   | inside, outside
    swim       | person, dog, bird        | -                                   | [wet]
    dance      | person                   | -                                   | inside, outside
    sing       | person                   | -                                   | inside, outside
    talk       | person                   | -                                   | inside, outside
    laugh      | person                   | -                                   | inside, outside
    cry        | person                   | -                                   | inside, outside
    eat        | person                   | [snacks]                            | inside, outside
    cook       | adult                    | vegetable                           | in the kitchen
    cut        | adult                    | vegetable, piece of fruit           | in the kitchen
    order      | person                   | drink, sandwich, cake               | -
    read       | person                   | [reading matter]                    | inside, outside
    write      | person                   | letter, novel                       | inside, outside
    play       | person                   | instrument                          | inside, outside
    clean      | person                   | piece of furniture, tool            | inside, outside
    wash       | person                   | vehicle, dog                        | in the street
    repair     | adult                    | vehicle, toy, instrument            | in the garage
    ride       | person                   | bicycle, horse                      | outside
    carry      | person                   | child, container, tool, chair       | inside, outside
    drag       | person                   | container, chair, table             | inside, outside
    hold       | person                   | toy, flower, tool, drink            | inside, outside
    buy        | person                   | toy, container, instrument, bicycle | -
    sell       | person                   | toy, container, instrument, bicycle | -
    fill       | person                   | container                           | inside, outside
    empty      | person                   | container                           | inside, outside
    plant      | person                   | [growing]                           | in the garden
    draw       | person                   | [growing], animal, vehicle          | inside, outside
    push       | person                   | [on wheels]                         | inside, outside
    pull       | person                   | [on wheels]                         | inside, outside
    throw      | person                   | [round]                             | outside
    catch      | person                   | ball                                | outside
    open       | person                   | [openings], box, bag                | -
    close      | person                   | [openings], box, bag                | -
    chase      | person, dog, cat         | person, dog, cat, goat, bird        | outside
    follow     | person, dog              | person, dog, horse, goat            | outside
    lead       | person, dog              | person, dog, horse, goat            | outside
    watch      | person, animal           | person, animal                      | outside
    look at    | person, animal           | person, animal                      | outside
    help       | person                   | person                              | inside, outside
    greet      | person                   | person                              | inside, outside
    photograph | person                   | person                              | inside, outside
    hug        | person                   | child, dog                          | inside, outside
    """,
        "|",
    )
}


def frame_of(verb: str) -> Frame:
    return FRAMES[verb if verb in FRAMES else VERBS.parent(verb)]


ONE_WAY = ("chase", "follow", "lead")  # if A does it to B, B does not do it to A
EITHER_WAY = ("watch", "look at", "help", "greet", "photograph")  # B may do it to A as well
COUNTED = ("carry", "hold", "buy", "sell", "plant", "draw", "wash", "order")  # many things at once
SHARED = ("carry", "wash", "repair", "push", "pull", "chase", "follow", "watch", "help", "greet")
TOGETHER = (*(verb for verb in FRAMES if not FRAMES[verb].objects), *SHARED)  # done by many at once
TRANSITIVE = tuple(verb for verb in FRAMES if FRAMES[verb].objects)


class Quantifier(NamedTuple):
    """ "At least two": from two to any number."""

    words: str
    least: int
    most: int


_ENDLESS = 99
NUMBERS = ("one", "two", "three", "four", "five", "six")
_COUNTED = tuple(enumerate(NUMBERS, 1))
QUANTIFIERS = (
    Quantifier("no", 0, 0),
    Quantifier("zero", 0, 0),
    *(Quantifier(word, n, n) for n, word in _COUNTED),
    *(Quantifier(f"exactly {word}", n, n) for n, word in _COUNTED),
    *(Quantifier(f"at least {word}", n, _ENDLESS) for n, word in _COUNTED),
    *(Quantifier(f"at most {word}", 0, n) for n, word in _COUNTED),
    *(Quantifier(f"more than {word}", n + 1, _ENDLESS) for n, word in _COUNTED[1:]),
    *(Quantifier(f"fewer than {word}", 0, n - 1) for n, word in _COUNTED[1:]),
)


class Modifier(NamedTuple):
    """Adjectives that exclude each other, and what they are said of, in the order of English."""

    words: tuple[str, ...]
    kinds: tuple[str, ...]
    relative: bool  # a small horse is not a small animal


_BEASTS = ("dog", "horse", "goat")
_GOODS = ("vehicle", "toy", "piece of furniture", "container", "tool", "[on wheels]")
_GROWN = ("animal", "[snacks]", "vegetable", "[growing]")

MODIFIERS = (
    Modifier(("rich", "poor"), ("person",), False),
    Modifier(("expensive", "cheap"), ("instrument", "vehicle", "piece of furniture"), True),
    Modifier(("big", "small"), ("drink", *_GROWN, *_GOODS), True),
    Modifier(("tall", "short"), ("person",), True),
    Modifier(("clean", "dirty"), ("[openings]", *_GOODS), False),
    Modifier(("young", "old"), ("adult", "bird", "cow", "sheep", *_BEASTS), True),
    Modifier(("new", "old"), ("instrument", "newspaper", "[openings]", *_GOODS), True),
    Modifier(("long", "short"), ("book", "letter"), True),
    Modifier(("wet", "dry"), ("cat", "[round]", *_BEASTS), False),
    Modifier(("black", "white", "brown", "grey"), ("cat", *_BEASTS), False),
    Modifier(("blond", "dark-haired"), ("person",), False),
    Modifier(("red", "blue", "green", "yellow"), ("ball", "[openings]", *_GOODS), False),
    Modifier(("red", "white", "pink"), ("flower",), False),
)

RELATIVE = frozenset(word for row in MODIFIERS if row.relative for word in row.words)


@cache
def modifiers(noun: str) -> tuple[Modifier, ...]:
    """Returns the adjectives that can be said of a noun."""
    return tuple(row for row in MODIFIERS if any(noun in NOUNS.under(kind) for kind in row.kinds))


SYNONYMS = dict(
    table("""
    child, kid; woman, lady; bicycle, bike; motorcycle, motorbike; sofa, couch; stone, rock
    car, automobile; taxi, cab; violin, fiddle; rich, wealthy; big, large; small, little
    expensive, costly; cheap, inexpensive; talk, speak; cry, weep; repair, fix; hug, embrace
    buy, purchase; close, shut; chase, pursue; inside, indoors; outside, outdoors
    in the forest, in the woods; in the sea, in the ocean; at midnight, in the middle of the night
""")
)

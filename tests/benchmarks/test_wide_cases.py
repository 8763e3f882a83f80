"""Cases of the wide rules that are worked by hand: all premises of a hypothesis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.release.wide_rules import WIDE_RULES, drawing, kinds, opposites, people
from genpool.reproduction.rules import LABELS, Case, ask
from genpool.reproduction.scenes import Dice, Phrase, Scene, render


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Scenes of "the man", now, without the details that are not part of a rule."""
    man = Phrase("man", "the")
    for module in (kinds, opposites, people, drawing):
        if hasattr(module, "somebody"):
            monkeypatch.setattr(module, "somebody", lambda *_: man)
        if hasattr(module, "around"):
            monkeypatch.setattr(module, "around", lambda _, scene: scene)
    monkeypatch.setattr(opposites, "article", lambda _: "the")
    monkeypatch.setattr(drawing, "_with_details", lambda _, premise, *__: premise)
    monkeypatch.setattr(drawing, "_without_shared", lambda _, premise, *__: premise)
    return monkeypatch


def premises_of(rule: str, hypothesis: str) -> list[set[str]]:
    """All premises of a rule for a hypothesis in the present, in the order of LABELS."""
    made: list[set[str]] = [set(), set(), set()]
    dice = Dice(0)
    for _ in range(3000):
        said, premises = ask(WIDE_RULES[rule], dice)
        if render(said) == hypothesis:
            for found, label in zip(made, LABELS, strict=True):
                found.add(render(premises[label]))
    return made


def test_what_is_not_open_is_closed_but_not_empty_is_not_full(bare: pytest.MonkeyPatch) -> None:
    door = opposites.Opposites(("door",), ("open", "wide open"), ("closed", "firmly closed"), True)
    glass = opposites.Opposites(("glass",), ("full", "quite full"), ("empty", "quite empty"), False)
    age = opposites.Opposites(("door", "glass"), ("new", "brand-new"), ("old", "ancient"), False)
    bare.setattr(opposites, "STATES", [door, glass, age])
    bare.setattr(opposites, "_MENTIONED", ("watch",))
    assert premises_of("state", "The door is open.") == [
        {"The door is wide open.", "The door is not closed."},
        {"The door is new.", "The door is old.", "The man is watching the door."},
        {"The door is closed.", "The door is firmly closed.", "The door is not open."},
    ]
    assert premises_of("state", "The door is not open.") == [
        {"The door is closed.", "The door is firmly closed."},
        {"The door is new.", "The door is old.", "The man is watching the door."},
        {"The door is open.", "The door is wide open.", "The door is not closed."},
    ]
    others = {"The glass is new.", "The glass is old.", "The man is watching the glass."}
    assert premises_of("state", "The glass is full.") == [
        {"The glass is quite full."},
        {*others, "The glass is not empty."},
        {"The glass is empty.", "The glass is quite empty.", "The glass is not full."},
    ]
    assert premises_of("state", "The glass is not full.") == [
        {"The glass is empty.", "The glass is quite empty."},
        {*others, "The glass is not empty."},
        {"The glass is full.", "The glass is quite full."},
    ]
    bare.setattr(opposites, "_SEEN", ("watch",))
    assert premises_of("attribute", "The man is watching an old glass.") == [
        {"The man is watching an ancient glass."},
        {f"The man is watching {what} glass." for what in ("a", "a full", "an empty")},
        {"The man is watching a new glass.", "The man is watching a brand-new glass."},
    ]


def test_who_sells_does_not_buy(bare: pytest.MonkeyPatch) -> None:
    trade = opposites.Opposites(("car",), ("buy", "purchase"), ("sell", "sell off"), False)
    bare.setattr(opposites, "ACTIONS", [trade])
    bare.setattr(opposites, "_MENTIONED", ("watch",))
    less = {"The man is watching the car.", "The man is planning to buy the car."}
    selling = {"The man is selling the car.", "The man is selling off the car."}
    assert premises_of("deed", "The man is buying the car.") == [
        {"The man is purchasing the car."},
        less,
        {*selling, "The man is not buying the car."},
    ]
    assert premises_of("deed", "The man is not buying the car.") == [
        selling,
        less,
        {"The man is buying the car.", "The man is purchasing the car."},
    ]


def test_a_kind_has_narrower_broader_and_other_kinds(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(kinds, "USES", {"feed": ("animal",)})
    entailing, neutral, against = premises_of("kind", "The man is feeding a bird.")
    birds = ["parrot", "pigeon", "chicken", "penguin"]
    assert entailing == {
        f"The man is feeding {what}." for what in ["an eagle", "an owl", *(f"a {b}" for b in birds)]
    }
    assert neutral == {"The man is feeding an animal."}
    assert {"The man is feeding a trout.", "The man is not feeding a bird."} < against
    assert not any(word in text for text in against for word in (*birds, "an animal", "tree"))


def test_roles_cannot_may_or_must_be_exchanged(bare: pytest.MonkeyPatch) -> None:
    one, two = Phrase("man", "the"), Phrase("nurse", "the")
    bare.setattr(people, "two_people", lambda _: (one, two))
    verbs = {"ONE_WAY": "teach", "EITHER_WAY": "thank", "MUTUAL": "argue with"}
    for name, verb in verbs.items():
        bare.setattr(people, name, (verb,))
    bare.setattr(people, "_NEAR", ("watch",))
    assert premises_of("swap", "The man is teaching the nurse.") == [
        {"The nurse is being taught by the man."},
        {"The nurse is being taught.", "The man is watching the nurse."},
        {"The nurse is teaching the man.", "The man is being taught by the nurse."},
    ]
    assert premises_of("swap", "The man is thanking the nurse.") == [
        {"The nurse is being thanked by the man."},
        {"The nurse is thanking the man.", "The man is being thanked by the nurse."},
        {"The man is not thanking the nurse."},
    ]
    assert premises_of("swap", "The man is arguing with the nurse.") == [
        {"The nurse is arguing with the man."},
        {"The man is watching the nurse."},
        {"The man is not arguing with the nurse."},
    ]


def test_a_relation_is_turned_round_with_its_converse(bare: pytest.MonkeyPatch) -> None:
    one, two, three = (Phrase(noun, "the") for noun in ("man", "nurse", "judge"))
    bare.setattr(people, "two_people", lambda _: (one, two))
    bare.setattr(people, "somebody", lambda *_: three)
    bare.setattr(people, "GOODS", ("a car",))
    bare.setattr(people, "_NEAR", ("watch",))
    rows = [
        ("sell {} to", "buy {} from", ""),
        ("be taller than", "be shorter than", "be as tall as"),
    ]
    bare.setattr(people, "CONVERSES", [people.Converse(*row) for row in rows])
    assert premises_of("converse", "The man is taller than the nurse.") == [
        {"The nurse is shorter than the man."},
        {"The man is taller than the judge.", "The man is watching the nurse."},
        {
            "The nurse is taller than the man.",
            "The man is shorter than the nurse.",
            "The man is as tall as the nurse.",
        },
    ]
    bare.setattr(people, "CONVERSES", [people.Converse(*rows[0])])
    bare.setattr(people, "around", lambda _, scene: replace(scene, past=True))
    assert premises_of("converse", "The man bought a car from the nurse.") == [
        {"The nurse sold a car to the man."},
        {"The man bought a car from the judge.", "The man watched the nurse."},
        {"The nurse bought a car from the man.", "The man sold a car to the nurse."},
    ]


def test_if_nobody_does_it_no_man_does(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(people, "activity", lambda _, subject: Scene((subject,), "sing"))
    bare.setattr(people, "ACTIVITIES", ("sing", "cook"))
    assert premises_of("nobody", "No adult is singing.") == [
        {"Nobody is singing.", "No person is singing.", "There is no person singing."},
        {
            f"{form.format(who)}."
            for who in ("man", "woman", "child")
            for form in ("No {} is singing", "There is no {} singing")
        },
        {"An adult is singing.", "A man is singing.", "A woman is singing."},
    ]
    assert premises_of("nobody", "A child is singing.") == [
        {"A boy is singing.", "A girl is singing."},
        {"A person is singing."},
        {
            "A child is not singing.",
            "Nobody is singing.",
            *(f"No {who} is singing." for who in ("child", "person")),
            *(f"There is no {who} singing." for who in ("child", "person")),
        },
    ]
    assert premises_of("nobody", "The boy is not singing.") == [
        {"Nobody is singing.", "No boy is singing.", "There is no boy singing."},
        {"The boy is not cooking."},
        {"The boy is singing."},
    ]


def test_a_detail_is_added_only_where_the_label_does_not_depend_on_it() -> None:
    singing = Scene((Phrase("man"),), "sing", place="at home")
    none = Scene((Phrase("no man", ""),), "sing")
    for premise in (none, Scene((Phrase("man", "at most two"),), "sing")):
        assert all(
            drawing._with_details(Dice(seed), premise, singing, ()) == premise for seed in range(50)
        )
    texts = {
        render(drawing._with_details(Dice(seed), singing, singing, ("subject", "time")))
        for seed in range(100)
    }
    assert texts == {"A man is singing at home.", "There is a man singing at home."}


@pytest.mark.usefixtures("bare")
def test_a_case_with_two_equal_texts_is_drawn_again() -> None:
    singing, crying, eating = (Scene((Phrase("man"),), verb) for verb in ("sing", "cry", "eat"))
    assert drawing.finish(Dice(0), Case(singing, singing, crying, eating)) == Case(singing)
    full = Case(singing, replace(singing, place="at home"), crying, eating)
    assert drawing.finish(Dice(0), full) == full

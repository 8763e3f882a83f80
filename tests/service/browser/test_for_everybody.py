"""The page for everybody: by keyboard, on a phone, in the dark, without seeing colours."""

from typing import Any

import numpy as np
import pytest

from tests.service.browser.conftest import LABELS, OpenPage

ONE = "#first=A+small+brown+dog+runs+along+the+beach."
TWO = "#mode=two&first=A+man+is+playing+a+guitar.&second=A+musician+performs."
VIEWS = {
    "one": (ONE, "#details"),
    "compared": (f"{ONE}&heads=1,3&by=weight", "#details"),
    "two": (TWO, "#pair"),
    "label": (f"{TWO}&carries=label&side=2", "#pair"),
    "search": ("#mode=search&first=an+animal+is+moving", "#hits"),
    "a very long word": ("#first=" + "Donaudampfschiff" * 12, "#details"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_nobody_meets_a_barrier_on_a_phone_or_a_screen(
    open_page: OpenPage, axe: str, view: str
) -> None:
    hash, ready = VIEWS[view]
    scheme = "dark" if view in ("two", "label") else "light"
    page = open_page(
        hash, ready=ready, width=390, has_touch=True, is_mobile=True, color_scheme=scheme
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390  # no sideways scrolling
    small = page.locator("main button:visible").evaluate_all(
        "nodes => nodes.filter(node => node.getBoundingClientRect().height < 24)"
        ".map(node => node.outerHTML)"
    )
    assert small == []  # WCAG 2.2: targets of at least 24 pixels
    assert barriers(page, axe) == []
    page.set_viewport_size({"width": 1280, "height": 900})
    assert barriers(page, axe) == []


def test_axe_finds_no_barriers_in_an_error_and_would_find_one(
    open_page: OpenPage, axe: str
) -> None:
    locked = {"error": {"message": "This service needs a key."}}
    page = open_page(
        ready="#problem",
        expected="Failed to load resource",
        color_scheme="dark",
        prepare=lambda page: page.route(
            "**/explain", lambda route: route.fulfill(status=401, json=locked)
        ),
    )
    assert barriers(page, axe) == []
    page = open_page(ONE)  # and it would find one
    page.evaluate("document.getElementById('first-label').remove()")
    page.evaluate("document.getElementById('first').removeAttribute('placeholder')")
    assert "label" in str(barriers(page, axe))


def barriers(page: Any, axe: str) -> list[str]:
    """What axe-core finds in a page, of any impact: rule, impact, elements."""
    page.evaluate(axe)  # not a script element, which the page's policy would refuse
    results = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']} ({rule['impact']}): {[node['html'] for node in rule['nodes']]}"
        for rule in results["violations"]
    ]


def test_everything_is_reached_by_tab_and_read_without_colours(open_page: OpenPage) -> None:
    page = open_page(TWO)
    labels = page.locator(".word").evaluate_all(LABELS)
    assert labels and all(any(mark.isdigit() for mark in label) for label in labels)
    wanted = page.evaluate(
        """[...document.querySelectorAll("a, button, textarea, canvas, input:checked")]
           .filter(node => node.checkVisibility() && node.tabIndex >= 0).length"""
    )
    reached = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(wanted):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.outerHTML.slice(0, 160)"))
    assert len(set(reached)) == wanted
    assert (
        page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    )  # one sees where one is


def test_the_page_works_without_a_pointer(open_page: OpenPage) -> None:
    page = open_page(ONE)
    page.focus("input[name=mode]:checked")
    page.keyboard.press("ArrowRight")
    page.focus("#second")
    page.keyboard.type("A cat sleeps.")
    page.keyboard.press("Enter")
    page.wait_for_selector('#pair [aria-label="Second sentence"] .word:nth-child(4)')
    page.focus('#heads [data-head="1"]')
    page.keyboard.press("Space")
    assert page.locator("#words .head-name strong").all_inner_texts() == ["Head 2"]
    page.focus("#words .word")
    page.keyboard.press("End")
    assert page.inner_text("#word mark") == page.locator("#words .word").last.inner_text()


def test_on_a_phone_the_details_of_a_word_stay_in_sight_once_it_is_tapped(
    open_page: OpenPage,
) -> None:
    page = open_page(width=390, has_touch=True, is_mobile=True)
    position = "getComputedStyle(document.getElementById('word-card')).position"
    assert page.evaluate(position) == "static"  # covers no word of a first visit
    page.locator("#words .word").nth(1).tap()
    assert page.evaluate(position) == "sticky"
    box = page.locator("#word-card").bounding_box()
    assert box["y"] + box["height"] <= 900 + 1
    assert page.inner_text("#word mark") == page.locator("#words .word").nth(1).inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_until_the_button_says_otherwise(
    open_page: OpenPage, scheme: str
) -> None:
    page = open_page(ONE, color_scheme=scheme)
    light, dark = "rgb(243, 245, 248)", "rgb(15, 20, 27)"
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == (light if scheme == "light" else dark)
    page.click("#theme")
    assert page.evaluate(background) == light
    page.click("#theme")
    assert page.evaluate(background) == dark
    page.reload()
    page.wait_for_selector("#details", state="visible")
    assert page.evaluate(background) == dark  # remembered
    top = page.locator("#words .word.marked").first
    assert top.evaluate("node => getComputedStyle(node).color") == "rgb(0, 0, 0)"


def linear(colors: np.ndarray) -> np.ndarray:
    parts = colors / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def luminances(colors: np.ndarray) -> np.ndarray:
    return linear(colors) @ [0.2126, 0.7152, 0.0722]


#: Machado et al. 2009, complete loss of one kind of cone, for linear RGB
BLINDNESS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
STYLES = """async (positions) => {
    const colors = await import("./static/colors.js");
    const numbers = (text) => text.match(/\\d+/g).map(Number);
    const read = (style) => positions.map((value) => {
        const {"background-color": surface, color} = style(value);
        return [numbers(surface), color === "#000000" ? [0, 0, 0] : [255, 255, 255]];
    });
    return {share: read((value) => colors.shareStyle(Math.abs(value))),
            signed: read(colors.signedStyle), picture: colors.cividis()};
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_differ_in_lightness_and_words_are_readable_on_them(
    open_page: OpenPage, scheme: str
) -> None:
    page = open_page(ONE, color_scheme=scheme)
    positions = np.linspace(0, 1, 101)
    styles = page.evaluate(STYLES, positions.tolist())
    surfaces, inks = np.array(styles["share"]).swapaxes(0, 1)
    steps = np.diff(luminances(surfaces))
    assert (steps < 0).all() if scheme == "light" else (steps > 0).all()
    assert (np.diff(luminances(np.array(styles["picture"]))) > -1e-3).all()
    for kind in ("share", "signed"):
        surfaces, inks = np.array(styles[kind]).swapaxes(0, 1)
        pairs = np.sort([luminances(surfaces), luminances(inks)], axis=0)
        assert ((pairs[1] + 0.05) / (pairs[0] + 0.05)).min() >= 4.5  # WCAG 2, level AA
    # Signs are told apart by the colour-blind.
    surfaces = np.array(page.evaluate(STYLES, [-0.75, -0.5, 0.5, 0.75])["signed"])[:, 0]
    for blindness, matrix in BLINDNESS.items():
        seen = np.clip(linear(surfaces) @ np.array(matrix).T, 0, 1) ** (1 / 2.2)
        negative, positive = seen[:2], seen[2:]
        distances = np.linalg.norm(negative[:, None] - positive[None], axis=-1)
        assert distances.min() > 0.2, blindness  # black and white are 1.7 apart

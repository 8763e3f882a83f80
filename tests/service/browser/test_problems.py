"""Errors of the service, shown by the page with the way out."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.service.browser.conftest import OpenPage, wait_for_words
from tests.service.conftest import running_service

#: what the browser itself writes into the console for an answer that is an error
REFUSED = "Failed to load resource"


def test_a_text_that_is_too_long_is_answered_by_the_service(open_page: OpenPage) -> None:
    page = open_page(expected=REFUSED)
    with page.expect_response("**/explain") as answer:
        page.fill("#first", "dog " * 5000)
    assert answer.value.status == 422
    page.wait_for_selector("#problem", state="visible")
    assert page.inner_text("#problem") == answer.value.json()["error"]["message"]
    assert page.is_hidden("#details")  # not those of another text
    assert page.locator("#first").bounding_box()["height"] <= 0.4 * 900  # the error is in sight
    page.fill("#first", "A dog runs.")
    page.wait_for_selector("#details", state="visible")
    assert page.is_hidden("#problem")


def test_an_overloaded_service_is_asked_again(open_page: OpenPage) -> None:
    busy = {"error": {"message": "The service is busy. Try again in a second."}}

    def refuse_once(page: Any) -> None:
        page.route("**/explain", lambda route: route.fulfill(status=503, json=busy), times=1)

    page = open_page(expected=REFUSED, prepare=refuse_once, ready="#problem")
    assert busy["error"]["message"] in page.inner_text("#problem")
    page.click("#problem button")
    page.wait_for_selector("#details", state="visible")
    assert page.is_hidden("#problem")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (lambda route: route.abort(), "The service does not answer"),
        (lambda route: route.fulfill(status=502, body="<html>Bad gateway"), "status 502"),
    ],
    ids=["stopped", "no JSON"],
)
def test_a_service_that_fails_is_named_as_the_cause(
    open_page: OpenPage, answer: Callable[[Any], None], shown: str
) -> None:
    page = open_page(expected=REFUSED)
    page.route("**/explain", answer)
    page.fill("#first", "A dog runs.")
    page.wait_for_selector("#problem", state="visible")
    assert shown in page.inner_text("#problem")


def test_an_old_answer_never_replaces_a_newer_one(open_page: OpenPage) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        if "slow" in route.request.post_data:
            held.append(route)
        else:
            route.continue_()

    page = open_page()
    page.route("**/explain", hold)
    page.fill("#first", "A slow sentence.")
    page.click("#run")
    page.fill("#first", "A fast one.")
    page.click("#run")
    wait_for_words(page, "A", "fast", "one", ".")
    assert held
    for route in held:
        route.abort()
    assert page.locator("#words .word").nth(1).inner_text() == "fast"
    assert page.is_hidden("#problem")


@pytest.fixture(scope="module")
def locked_service() -> Iterator[str]:
    with running_service("--api-key", "open sesame") as (_, address):
        yield address


def test_a_service_with_a_key_asks_for_it_and_keeps_it_out_of_the_address(
    open_page: OpenPage, locked_service: str
) -> None:
    page = open_page(address=locked_service, expected=REFUSED, ready="#key")
    page.fill("#key", "wrong")
    with page.expect_response("**/v1/models") as answer:
        page.keyboard.press("Enter")
    assert answer.value.status == 401
    page.wait_for_selector("#key:invalid")  # empty again: it is required
    page.fill("#key", "open sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector("#details", state="visible")
    assert "sesame" not in page.url
    page.reload()
    page.wait_for_selector("#details", state="visible")
    assert page.is_hidden("#search-mode")  # this service has no index

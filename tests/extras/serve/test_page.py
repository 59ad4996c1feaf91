"""The page in headless Chromium: typing, words, keys, touch, marks, errors, token, small and dark
screens.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")
pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, Page, Request, expect

from nmt.extras.serve.answers import ServedRun
from tests.extras.analysis.test_html import needs_chromium
from tests.extras.serve.conftest import serving

pytestmark = [pytest.mark.slow, needs_chromium]

DOG = "The dog sees the tree."
TOKEN = "a token of some length"

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def address(served: list[ServedRun]) -> Iterator[str]:
    with serving(served, {"characters": 300}) as address:
        yield address


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Open]:
    """Opens the page with a text; afterwards nothing may have been loaded from elsewhere, and no
    script may have failed.
    """
    contexts, problems, hosts = [], list[str](), set[str]()

    def open_page(text: str = "", url: str = address, **settings: Any) -> Page:
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                problems.append(message.text) if "Content Security" in message.text else None
            ),
        )
        page.on(
            "request",
            lambda request: hosts.add(request.url.split("/")[2]) if "://" in request.url else None,
        )
        page.goto(url)
        if text:
            page.fill("#source", text)
            expect(words(page).first).to_be_visible(timeout=20_000)
            expect(page.locator(".run[aria-busy]")).to_have_count(0)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
    assert {host.split(":")[0] for host in hosts} == {"127.0.0.1"}


def words(page: Page, run: int = 0) -> Any:
    return page.locator(".run").nth(run).locator(".words.output button")


def shown(page: Page, run: int = 0) -> str:
    return " ".join(words(page, run).all_inner_texts())


def test_typing_translates(open_page: Open, served: list[ServedRun]) -> None:
    page, addresses = open_page(), list[str]()

    def note(request: Request) -> None:
        addresses.append(request.url)

    page.on("request", note)
    page.locator("#source").press_sequentially(DOG, delay=20)
    expected = served[0].translator.translate([DOG])[0].text
    for run in range(2):  # side by side
        expect(words(page, run)).to_have_text(
            expected.split()
        )  # waits: while typing, the page shows shorter texts
    assert len(addresses) < len(DOG)  # not one for each key
    expect(page.locator("#announcement")).to_contain_text(expected)
    page.fill("#source", "")
    expect(words(page)).to_have_count(0)
    page.fill("#source", f"{DOG}\n\nThe king loves the river.")
    expect(page.locator(".run").first.locator("figure")).to_have_count(2)


def test_another_word_changes_the_rest(open_page: Open) -> None:
    page = open_page(DOG)
    before = shown(page)
    words(page).nth(1).click()
    choices = page.locator(".panel .choices button")
    expect(choices.nth(1)).to_be_visible()
    expect(choices.first).to_have_attribute("aria-current", "true")
    word = choices.nth(1).locator("strong").inner_text()
    choices.nth(1).click()
    expect(words(page).nth(1)).to_have_text(word)
    expect(words(page).nth(1)).to_be_focused()
    assert words(page).nth(0).inner_text() == before.split()[0]
    page.get_by_role(
        "button", name=before, exact=True
    ).first.click()  # back, among the other translations
    expect(words(page)).to_have_text(before.split())


def test_a_typed_word(open_page: Open) -> None:
    page = open_page(DOG)
    words(page).nth(1).click()
    page.get_by_label("Another word").fill("Zebra")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .notes")).to_contain_text("'Zebra' is not in the target vocabulary")
    page.get_by_label("Another word").fill("König")
    page.keyboard.press("Enter")
    expect(words(page).nth(1)).to_have_text("König")


def test_keys(open_page: Open) -> None:
    page = open_page(DOG)
    page.focus("#source")
    for _ in range(3):  # the button Copy, the source, the translation
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(words(page).nth(1)).to_be_focused()
    status = page.locator(".run").first.locator(".status")
    expect(status).to_contain_text("attends to")
    assert page.locator(".run").first.locator(".source button[data-percent]").count() > 0
    page.keyboard.press("Enter")
    expect(page.locator(".panel .choices button").first).to_be_visible()
    expect(words(page).nth(1)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    expect(words(page).nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(status).to_contain_text("is attended to by")


def test_touch_and_mouse(open_page: Open) -> None:
    page = open_page(DOG, has_touch=True, viewport={"width": 375, "height": 700})
    words(page).nth(2).tap()
    expect(page.locator(".status").first).to_contain_text("attends to")
    expect(page.locator(".panel .choices button").first).to_be_visible()
    page.locator(".run").nth(1).locator(".source button").nth(1).hover()
    expect(page.locator(".status").nth(1)).to_contain_text("is attended to by")


def test_marks(open_page: Open) -> None:
    """Replaced and doubtful words look different, and their description is text."""
    page = open_page("The qqq sees the zzz.")
    marked = page.locator(".run").first.locator(".output button[data-mark]")
    assert marked.count() > 0
    assert all(mark.get_attribute("aria-description") for mark in marked.all())
    decoration = marked.first.locator("bdi").evaluate(
        "element => getComputedStyle(element).textDecorationLine"
    )
    assert decoration == "underline"
    expect(page.locator(".run").first.locator(".notes").first).to_be_visible()


def test_errors_are_shown(open_page: Open) -> None:
    page = open_page(DOG)
    page.fill("#source", "x" * 400)
    expect(page.get_by_role("alert")).to_have_text(
        "400 characters; a request has at most 300; split it"
    )
    page.fill("#source", DOG)
    expect(page.get_by_role("alert")).to_have_text("")


def test_a_busy_server_is_asked_again(open_page: Open) -> None:
    page, refused = open_page(), list[int]()

    def refuse_once(route: Any) -> None:
        refused.append(1)
        if len(refused) > 2:
            route.continue_()
        else:
            headers = {"Retry-After": "1", "Content-Type": "application/json"}
            route.fulfill(status=503, headers=headers, body='{"error": "the queue is full"}')

    page.route("**/translate", refuse_once)
    page.fill("#source", DOG)
    expect(page.get_by_role("alert")).to_have_text("the queue is full")
    expect(words(page).first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_text("")


def test_a_token(open_page: Open, served: list[ServedRun]) -> None:
    with serving(served, {}, token=TOKEN) as address:
        page = open_page(url=address)
        page.get_by_label("This server needs a token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("the token is missing or wrong")
        page.get_by_label("This server needs a token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#token")).to_be_hidden()
        page.fill("#source", DOG)
        expect(words(page).first).to_be_visible()
        linked = open_page(DOG, url=f"{address}/#token={TOKEN.replace(' ', '+')}")
        assert linked.url == f"{address}/"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_screens(open_page: Open, scheme: str) -> None:
    page = open_page(DOG, color_scheme=scheme, viewport={"width": 320, "height": 600})
    words(page).nth(1).click()
    expect(page.locator(".panel .choices button").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    red = int(
        page.evaluate("getComputedStyle(document.body).backgroundColor").split("(")[1].split(",")[0]
    )
    assert red > 200 if scheme == "light" else red < 50

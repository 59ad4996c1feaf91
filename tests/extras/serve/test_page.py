"""The page in headless Chromium: typing, words, keys, errors, token, files, terms."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, FilePayload, Page, Route, expect

from nmt.extras.serve.answers import ServedRun
from tests.extras.analysis.test_html import needs_chromium
from tests.extras.serve.conftest import DOG, KING, TOKEN, serving

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture
def page(browser: Browser, served: list[ServedRun]) -> Iterator[Page]:
    """The page, which has asked for the token. Afterwards nothing may have been loaded from
    elsewhere, and no script may have failed.
    """
    problems, hosts = list[str](), set[str]()
    with (
        serving(served, characters=300, token=TOKEN) as address,
        browser.new_context(viewport={"width": 375, "height": 700}) as context,
    ):
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: hosts.add(request.url.split("/")[2].split(":")[0]))
        page.goto(address)
        expect(page.get_by_role("alert")).to_contain_text("the token is missing or wrong")
        page.get_by_label("This server needs a token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#token")).to_be_hidden()
        yield page
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert (problems, hosts) == ([], {"127.0.0.1"})


def words(page: Page, run: int = 0) -> Any:
    return page.locator(".run").nth(run).locator(".words.output button")


def test_a_user_translates_and_changes_words(page: Page, served: list[ServedRun]) -> None:
    page.locator("#source").press_sequentially(DOG, delay=20)
    text = served[0].texts.sentence_translator.translate([DOG])[0].text
    for run in range(2):  # side by side
        expect(words(page, run)).to_have_text(text.split())
    expect(page.locator("#announcement")).to_contain_text(text)

    words(page).nth(1).click()
    choices = page.locator(".panel .choices button")
    expect(choices.nth(1)).to_be_visible()
    expect(choices.first).to_have_attribute("aria-current", "true")
    word = choices.nth(1).locator("strong").inner_text()
    choices.nth(1).click()
    expect(words(page).nth(1)).to_have_text(word)
    expect(words(page).nth(1)).to_be_focused()
    page.get_by_role("button", name=text, exact=True).first.click()  # back
    expect(words(page)).to_have_text(text.split())

    held = list[Route]()  # until the word was refused
    page.route("**/alternatives", lambda route: held.insert(0, route))
    words(page).nth(1).click()
    page.get_by_label("Another word").fill("Zebra")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .notes")).to_contain_text("'Zebra' is not in the target vocabulary")
    held.pop().continue_()
    page.unroute("**/alternatives")
    expect(choices.nth(1)).to_be_visible()
    expect(page.locator(".panel .notes")).to_contain_text("'Zebra' is not in the target vocabulary")
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    expect(words(page).nth(1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".run .status").first).to_contain_text("attends to")

    page.fill("#source", "The qqq sees the zzz.")
    marked = page.locator(".run").first.locator(".output button[data-mark]")
    expect(marked.first).to_have_attribute("aria-description", re.compile("doubtful|replaced"))
    page.fill("#source", "x" * 400)
    expect(page.get_by_role("alert")).to_have_text(
        "400 characters; a request has at most 300; split it"
    )
    page.fill("#source", f"{DOG}\n\nThe king loves the river.")
    expect(page.get_by_role("alert")).to_have_text("")
    expect(page.locator(".run").first.locator("figure")).to_have_count(2)


def test_a_user_translates_files(page: Page, served: list[ServedRun]) -> None:
    content = f"{DOG}\nqqq zzz\n".encode()
    files = [
        FilePayload(name=name, mimeType="text/plain", buffer=content)
        for name in ("Grüße.txt", "a.xyz")
    ]
    page.get_by_label("Translate files").set_input_files(files)
    first, second = (page.get_by_role("article", name=name) for name in ("Grüße.txt", "a.xyz"))
    expect(first.get_by_role("listitem")).to_contain_text("line 2: ")
    expect(second.get_by_role("status")).to_contain_text("a.xyz: unknown format")
    with page.expect_download() as download:
        first.get_by_role("link").click()
    assert download.value.suggested_filename == "Grüße.de.txt"
    (line, _) = download.value.path().read_text("utf-8").splitlines()
    assert line == served[0].texts.sentence_translator.translate([DOG])[0].text


def test_terms_are_used_and_kept(page: Page) -> None:
    page.fill("#source", DOG)
    expect(words(page).first).to_be_visible()
    page.get_by_text("Terms", exact=True).click()
    page.get_by_label("One in each line").fill("dog = Katze\nnonsense\n\ntree = Strauch")
    expect(page.locator("#terms-note")).to_have_text("Not used: line 2. Write: word = translation")
    for word in ("Katze", "Strauch"):
        expect(page.locator(".run").first.locator(".words.output")).to_contain_text(word)
    page.reload()
    expect(page.get_by_text("Terms (2)")).to_be_visible()
    page.fill("#source", DOG)
    expect(page.locator(".run").first.locator(".words.output")).to_contain_text("Katze")


def test_sentences_of_a_line_show_their_words(page: Page, served: list[ServedRun]) -> None:
    page.fill("#source", f"{DOG} {KING}\n{DOG}")
    texts = [each.text for each in served[0].texts.sentence_translator.translate([DOG, KING])]
    run = page.locator(".run").first
    paragraphs = run.locator(".text")
    expect(paragraphs).to_have_text([" ".join(texts), texts[0]])
    sentence = paragraphs.first.get_by_role("button").nth(1)
    expect(sentence).to_have_text(texts[1])
    sentence.focus()
    page.keyboard.press("Enter")
    expect(sentence).to_have_attribute("aria-expanded", "true")
    expect(words(page)).to_have_text(texts[1].split())

    words(page).nth(1).click()
    choices = run.locator(".panel .choices button")
    expect(choices.nth(1)).to_be_visible()
    word = choices.nth(1).locator("strong").inner_text()
    choices.nth(1).click()
    expect(words(page).nth(1)).to_have_text(word)
    changed = sentence.inner_text()
    assert changed.split()[1] == word
    expect(page.locator("#announcement")).to_contain_text(f"{texts[0]} {changed}\n{texts[0]}")
    sentence.press(" ")
    expect(run.locator("figure")).to_have_count(0)


def test_the_table_of_attention_and_the_tree_of_the_beam(page: Page) -> None:
    page.evaluate("location.hash = '#q=The+dog+sees+the+tree.'")  # a link
    run = page.locator(".run").first
    expect(run.locator(".words.output button").first).to_be_visible()
    shown = run.locator("figure").get_attribute("data-text") or ""
    run.get_by_text("Attention in percent").focus()
    page.keyboard.press("Enter")
    table = run.get_by_role("region", name="Attention in percent")
    expect(table.locator("thead th")).to_have_text([*DOG.split(), "(end)"])
    expect(table.locator("tbody th")).to_have_text(shown.split())
    cells = table.locator("tbody tr").nth(1).locator("td").all_text_contents()
    assert sum(int(cell or 0) for cell in cells) == pytest.approx(100, abs=3)
    run.locator(".choices button").first.click()  # another translation: the part stays open
    text = run.locator("figure").get_attribute("data-text")
    expect(run.get_by_role("region", name=f"run: {text}")).to_be_visible()

    run.get_by_text("Tree of the beam").focus()
    page.keyboard.press("Enter")
    best = run.locator(".tree .best b")
    expect(best.last).to_have_text("1. (end)")
    assert " ".join(best.all_text_contents()[:-1]).replace(" +", "") == shown
    page.keyboard.press("Tab")
    expect(run.locator(".tree")).to_be_focused()


def test_a_link_has_the_text(page: Page) -> None:
    page.fill("#source", f"{DOG}\n100 % + & so?")
    link = page.get_by_role("link", name="Link").first
    expect(link).to_have_attribute("href", re.compile("so"))
    url = page.evaluate("document.querySelector('.run header a').href")
    page.goto("about:blank")
    page.goto(f"{url}&token={TOKEN}")
    expect(page.locator("#source")).to_have_value(f"{DOG}\n100 % + & so?")
    expect(words(page).first).to_be_visible()
    assert page.url == url

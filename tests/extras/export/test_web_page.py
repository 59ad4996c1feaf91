"""`nmt export --web`: what it writes and refuses; in headless Chromium, that the page translates
without a server, and gives the answers of `nmt serve`.
"""

import gzip
import json
import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, Page, expect
from torch import nn

from nmt.extras.export import web_page
from nmt.extras.export.web_page import write_web
from nmt.extras.serve.answers import ServedRun, beam_tree, find_alternatives, line_details
from nmt.model.seq2seq import Seq2Seq
from nmt.run.weights import load_model
from nmt.texts.warnings import DESCRIPTIONS, ITEMS_CHANGED, SENTENCES_LOST, WORDLESS
from tests.conftest import Run
from tests.extras.analysis.test_html import needs_chromium
from tests.extras.serve.conftest import served  # noqa: F401

DOG, KING = "The dog sees the tree.", "The king loves the river."
LINES = [
    DOG,
    KING,
    "the dog",
    "xyz qqq jkw vvv",
    "★  ★",
    "A qqq sees the zzz!",
    "The tree loves the dog and the king.",
    "…",
]


def test_a_folder_and_a_file(nmt: Run, run: Path, tmp_path: Path) -> None:
    site, file = tmp_path / "site", tmp_path / "one.html"
    result = nmt("export", run, run, "--web", site, "--beam", 3)
    assert (result.status, result.err) == (0, "")
    size, command = result.out.splitlines()
    assert re.fullmatch(rf"{site}: \d\.\d MB; it translates without nmt, in any browser:", size)
    assert command == f"python -m http.server -d {site}"
    names = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    parts = [f"runs/{name}/{part}.gz" for name in ("run", "run-2") for part in ("model", "weights")]
    assert names == {"index.html", *parts}
    html = (site / "index.html").read_text("utf-8")
    assert len(gzip.compress(html.encode())) < 28_500
    (listed,) = re.findall('<script type="application/json" id="runs">(.*)</script>', html)
    assert json.loads(listed)[1] == {
        "name": "run-2",
        "source": "en",
        "target": "de",
        "translations": 3,
        "model": "runs/run-2/model.gz",
        "weights": "runs/run-2/weights.gz",
    }
    result = nmt("export", run, "--web", file, "--weights", "float32")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[1] == f"open {file}"
    exact = json.loads(re.findall('id="runs">(.*)</script>', file.read_text("utf-8"))[0])[0]
    assert (site / "runs/run/weights.gz").stat().st_size < 0.3 * len(exact["weights"])
    for existing in (site, file):
        message = f"nmt: {existing}: exists; delete it, or choose another name after --web\n"
        nmt.refuses(message, "export", run, "--web", existing)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--web", "{new}", "-o", "x"], "-o writes a folder, and --web a page; give one of them"),
        (["--weights", "int8"], "--weights is for --web"),
        (["{run}", "-o", "{new}"], "2 runs: only --web takes several"),
    ],
)
def test_what_it_refuses(
    nmt: Run, folder: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    run, new = folder / "run", tmp_path / "new"
    result = nmt("export", run, *(option.format(run=run, new=new) for option in options))
    assert result.status != 0
    assert message in " ".join(result.err.split())
    assert not new.exists()


class Own(nn.Identity):
    """A part of a user."""


def test_parts_of_a_user_are_refused(
    nmt: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(run: Path, checkpoint: Path) -> Seq2Seq:
        model = load_model(run, checkpoint)
        model.decoder.add_module("own", Own())
        return model

    monkeypatch.setattr(web_page, "load_model", load)
    text = f"nmt: {folder / 'run'}: Own: a part of your own cannot run in a page\n"
    nmt.refuses(text, "export", folder / "run", "--web", tmp_path / "new")


@pytest.mark.parametrize(
    ("key", "value", "only"),
    [
        ("method", "sampling", "beam"),
        ("neighbors.pairs", 8, 0),
        ("rerank.run", "de-en", "null"),
    ],
)
def test_searches_that_the_page_lacks(
    nmt: Run, folder: Path, tmp_path: Path, key: str, value: object, only: object
) -> None:
    options = ("--web", tmp_path / "new", "--set", f"decoding.{key}={value}")
    message = f"decoding.{key}: {value} cannot run in a page; add --set decoding.{key}={only}\n"
    nmt.refuses(message, "export", folder / "run", *options)
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def page(
    browser: Browser, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """One HTML file with two runs, opened without a network. Afterwards nothing may have been
    loaded from elsewhere, and no script may have failed.
    """
    file, problems = tmp_path_factory.mktemp("web") / "one.html", list[str]()
    write_web([folder / "run", folder / "other"], file, "float32", ())
    with browser.new_context(viewport={"width": 375, "height": 700}, offline=True) as context:
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on(
            "request",
            lambda request: (
                problems.append(request.url[:80])
                if not request.url.startswith(("file:", "data:", "blob:"))
                else None
            ),
        )
        page.goto(f"{file.as_uri()}#q={DOG}")
        yield page
    assert problems == []


def ask(page: Page, path: str, **body: Any) -> dict[str, Any]:
    result: dict[str, Any] = page.evaluate(
        "([path, body]) => request(path, { run: 'run', ...body })", [path, body]
    )
    return result


LEFT_OUT = [DESCRIPTIONS[each] for each in (SENTENCES_LOST, ITEMS_CHANGED, WORDLESS)]


def same(found: Any, expected: Any) -> None:
    """All that `expected` has and the page reads; the server rounds."""
    if isinstance(expected, dict):
        for key in {*expected} - {"alignment", "src_cut", "log_prob"}:
            known = expected[key]
            if key == "warnings":
                known = [each for each in known if each not in LEFT_OUT]
            same(found[key], known)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), (found, expected)
        for each, other in zip(found, expected, strict=True):
            same(each, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-4)
    else:
        assert found == expected


@pytest.mark.slow
@needs_chromium
def test_answers_are_those_of_the_server(page: Page, served: list[ServedRun]) -> None:  # noqa: F811
    run, warnings = served[0], list[str]()
    for line in LINES:
        expected = line_details(run.texts.sentence_translator.translate_n_best([line], 3)[0], run)
        (found,) = ask(page, "/translate", q=[line], alternatives=2)["lines"]
        same(found, expected)
        warnings += found["warnings"]
    assert len({*warnings}) > 1
    (found,) = ask(page, "/translate", q=[f"{DOG} A qqq sees the zzz!"])["lines"]
    assert found["translations"][0]["text"] == " ".join(
        each["translations"][0]["text"] for each in found["sentences"]
    )
    assert found["warnings"] == found["sentences"][1]["warnings"] != []
    tokens = run.texts.sentence_translator.translate([DOG])[0].tokens
    for n in range(len(tokens)):
        found = ask(page, "/alternatives", q=DOG, tokens=tokens[:n])["alternatives"]
        same(found, [*find_alternatives(run, DOG, tokens[:n], 8)])
    text = "Der Hund"
    (begun,) = run.texts.sentence_translator.translate_n_best([DOG], 1, [text])
    (found,) = ask(page, "/translate", q=[DOG], prefix=text)["lines"]
    same(found, line_details(begun, run))
    same(ask(page, "/tree", q=DOG)["nodes"], beam_tree(run, DOG))


@pytest.mark.slow
@needs_chromium
def test_a_user_without_a_server(page: Page, served: list[ServedRun]) -> None:  # noqa: F811
    words = page.locator(".run").first.locator(".words.output button")
    expect(words).to_have_text(served[0].texts.sentence_translator.translate([DOG])[0].text.split())
    expect(page.locator(".run")).to_have_count(2)
    for name in ("Translate files", "For programs", "Terms"):
        expect(page.get_by_text(name)).to_have_count(0)
    words.nth(1).click()
    choices = page.locator(".panel .choices button")
    expect(choices.nth(1)).to_be_visible()
    page.get_by_label("Another word").fill("Zebra")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .notes")).to_contain_text("'Zebra' is not in the target vocabulary")
    page.keyboard.press("Escape")
    page.fill("#source", "مرحبا يا صديقي")
    first, second = (page.locator(".words.source button").nth(n) for n in range(2))
    expect(first).to_have_text("مرحبا")
    places: list[Any] = [each.bounding_box() for each in (first, second)]
    assert places[0]["x"] > places[1]["x"]  # from right to left
    page.fill("#source", f"{DOG} {KING}")
    expect(page.locator(".run").first.locator(".text [role=button]")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
@needs_chromium
def test_a_folder_is_served(browser: Browser, folder: Path, tmp_path: Path) -> None:
    """From any folder of a static host. Opened from disk it says what is missing."""
    site = tmp_path / "a b" / "site"
    site.parent.mkdir()
    write_web([folder / "run"], site, "int8", ())

    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/a b/site/"
        with browser.new_page() as page:
            page.goto(f"{address}#q={DOG}")
            expect(page.locator(".words.output button").first).to_be_visible()
        file = site / "runs/run/weights.gz"
        for content in (file.read_bytes()[:9000], gzip.compress(b"too short"), b"<html>"):
            file.write_bytes(content)
            message = "run cannot be used: its files are damaged or incomplete"
            with browser.new_page() as page:  # with an empty cache
                page.goto(f"{address}#q={DOG}")
                expect(page.get_by_role("alert")).to_contain_text(message)
        server.shutdown()
    with browser.new_page() as page:
        page.goto((site / "index.html").as_uri())
        expect(page.locator("#progress")).to_contain_text("a folder needs a web server")

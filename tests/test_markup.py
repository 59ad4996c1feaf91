"""Markup in sentences, tokens, and names of runs and files stays text on every page: in Chromium no
script runs.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, Page, expect

import nmt as package
from tests import toy
from tests.conftest import Run
from tests.extras.analysis.test_html import needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]

# The first ends what text may stand in: attributes, scripts, styles, comments, CDATA. None has a
# slash before a name of a file.
PAYLOADS = (
    '"\'--></script></style></title></text>]]><img src=x onerror="window.owned=1">',
    "<script>window.owned=1</script>",
    "<svg onload=window.owned=1>",
    "<iframe srcdoc='<script>parent.owned=1</script>'></iframe>",
    "[x](javascript:window.owned=1)",
    "${window.owned=1}{{window.owned=1}}",
    "&lt;script&gt;window.owned=1&lt;/script&gt;",
)
FILE_PAYLOAD = "<img src=x onerror=window.owned=1>"
SENTENCE = f"The dog {' '.join(PAYLOADS)} tree."
# Elements or attributes that only a payload brings.
INJECTED = """() => [...document.querySelectorAll("*")].filter((element) =>
  [...element.attributes].some(({name, value}) =>
    name.startsWith("on") || value.trim().startsWith("javascript:"))
  || element.textContent.startsWith("window.owned") && ["SCRIPT", "STYLE"].includes(element.tagName)
  || element.getAttribute("src") === "x").map((element) => element.outerHTML)"""


@pytest.fixture(scope="module", autouse=True)
def quick_pictures() -> None:
    """In place of that of all tests: pictures are drawn here."""


@pytest.fixture
def check(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Opens an address, and checks that no payload has become more than text."""
    contexts = []

    def check(address: str) -> Page:
        contexts.append(browser.new_context())
        page, requests = contexts[-1].new_page(), list[str]()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert_harmless(page)
        assert [
            url
            for url in requests
            if not url.startswith(("data:", "about:", address.split("?", maxsplit=1)[0]))
        ] == []
        return page

    yield check
    for context in contexts:
        context.close()


def assert_harmless(page: Page) -> None:
    assert page.evaluate("window.owned") is None
    for frame in page.frames:
        assert frame.evaluate(INJECTED) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose tokens, data and folder are named by payloads."""
    folder = tmp_path_factory.mktemp("markup")
    trained = toy.train(folder, training=toy.ONE_UPDATE)
    run = folder / f"run {FILE_PAYLOAD}"
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("checksums.json"))
    for side in ("src", "tgt"):
        path = run / f"{side}.vocab.txt"
        lines = path.read_text(encoding="utf-8").splitlines()
        tokens = [
            f"{PAYLOADS[index % len(PAYLOADS)]}{index}\t{line.split(chr(9))[1]}"
            for index, line in enumerate(lines[4:])
        ]
        path.write_text("\n".join([*lines[:4], *tokens, ""]), encoding="utf-8")
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksum"]
    manifest["inputs"][0]["path"] = f"data/{FILE_PAYLOAD}"
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return run


def test_the_check_finds_scripts(check: Callable[[str], Page], tmp_path: Path) -> None:
    """Or the others would prove nothing."""
    for payload in (*PAYLOADS[:3], f'<a href="{PAYLOADS[4][4:-1]}">x</a>'):
        (tmp_path / "x.html").write_text(f"<!doctype html><p>{payload}")
        with pytest.raises(AssertionError):
            check((tmp_path / "x.html").as_uri())


def test_the_report_page(nmt: Run, run: Path, check: Callable[[str], Page], tmp_path: Path) -> None:
    for name, lines in (
        ("src", [SENTENCE, *PAYLOADS]),
        ("ref", [SENTENCE, *reversed(PAYLOADS)]),
        ("other", [*PAYLOADS, SENTENCE]),
    ):
        (tmp_path / f"{name} {FILE_PAYLOAD}").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    src, ref, other = (tmp_path / f"{name} {FILE_PAYLOAD}" for name in ("src", "ref", "other"))
    words = [
        "--sources",
        src,
        "--references",
        ref,
        "--compare",
        other,
        "--report",
        tmp_path / "report",
    ]
    result = nmt("analyze", run, *words)
    assert result.status == 0, result.err
    page = check((tmp_path / "report" / "index.html").as_uri())
    for word in page.locator("figure button").all()[:20]:
        word.evaluate("word => word.click()")
    assert_harmless(page)
    assert "<script>window.owned=1</script>" in page.inner_text("body")


def test_pictures_and_pages_of_attention(
    nmt: Run, run: Path, check: Callable[[str], Page], tmp_path: Path
) -> None:
    for name in ("attention.html", "attention.svg"):
        result = nmt("translate", "--run", run, "--attention", tmp_path / name, SENTENCE)
        assert result.status == 0, result.err
        check((tmp_path / name).as_uri())
    assert "window.owned" in (tmp_path / "attention.svg").read_text(encoding="utf-8")


def test_a_notebook(run: Path, check: Callable[[str], Page], tmp_path: Path) -> None:
    (translation,) = package.load(run).translate([SENTENCE])
    (tmp_path / "cell.html").write_text(
        f"<!doctype html><meta charset=utf-8>{translation._repr_html_()}", encoding="utf-8"
    )
    page = check((tmp_path / "cell.html").as_uri())
    assert len(page.frames) == 2
    assert "<script>window.owned=1</script>" in page.frames[1].inner_text("body")


def test_the_page_of_the_server(run: Path, check: Callable[[str], Page]) -> None:
    from nmt.extras.serve.command import load_runs
    from tests.extras.serve.conftest import serving

    with serving(load_runs([run], device="cpu", overrides=())) as address:
        page = check(f"{address}/")
        page.fill("#source", "\n".join(PAYLOADS[:3]))
        # The tags of blocks in it divide the first line, so its words show on demand.
        page.get_by_role("paragraph").get_by_role("button").first.click(timeout=60_000)
        words = page.locator(".run .words.output button")
        expect(words.first).to_be_visible(timeout=60_000)
        words.first.click()
        expect(page.locator(".run[aria-busy]")).to_have_count(0, timeout=60_000)
        assert_harmless(page)
        assert FILE_PAYLOAD in page.content().replace("&lt;", "<").replace("&gt;", ">")

"""nmt.extras.analysis.html: pages need no other files, escape any text, and work in a browser."""

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.translation import Translation
from nmt.extras.analysis.command import command
from nmt.extras.analysis.html import attention_figure, page
from tests.conftest import Run

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium: apt-get install chromium"
)

WEIGHTS = np.array([[0.9, 0.08, 0.02], [0.0, 0.62, 0.38]], np.float32)


class Reading(HTMLParser):
    """The tags of a page, and its text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] not in ("script", "style"):
            self.texts.append(data)


def test_percentages_stand_where_the_weights_are() -> None:
    text = attention_figure(["a", "￭b", "<eos>"], ["c", "d"], WEIGHTS, "A & B")
    rows = re.findall(r'<tr><th scope="row">(.*)', text)
    percent = [re.split(r"<td[^>]*>", row)[1:] for row in rows]
    assert percent == [["90", "8", "2"], ["", "62", "38"]]
    assert re.findall(r"<bdi>([^<]*)</bdi></button>", text) == ["a", "b", "&lt;eos&gt;", "c", "d"]
    assert "<figcaption>A &amp; B</figcaption>" in text


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=4
    )
)
def test_no_text_becomes_markup(tokens: list[str]) -> None:
    tokens = [*tokens, HOSTILE, "</style>", '"><img src=x onerror=alert(1)>', "</td>&amp;"]
    weights, plain_tokens = np.full((len(tokens), len(tokens)), 0.5), ["x"] * len(tokens)
    plain = page("T", [("H", attention_figure(plain_tokens, plain_tokens, weights, "C"))])
    assert "default-src 'none'" in plain
    figure = attention_figure(tokens, tokens, weights, tokens[-3])
    hostile = Reading(page(tokens[-4], [(tokens[-2], figure)]))
    assert hostile.tags == Reading(plain).tags
    assert all(token.removeprefix("￭") in "".join(hostile.texts) for token in tokens)


def in_browser(folder: Path, text: str, script: str, *flags: str) -> Any:
    """The return value of `script`, the body of a function, in the open page; fails on any message
    on the console.
    """
    probe = f"""<script>const probed = document.createElement("pre");
    probed.id = "probed"; probed.textContent = JSON.stringify((() => {{ {script} }})());
    document.body.append(probed);</script>"""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", f"{probe}</body>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    options += ["--dump-dom", f"--user-data-dir={folder / 'profile'}", *flags, path.as_uri()]
    done = subprocess.run(
        [str(CHROMIUM), *options], capture_output=True, text=True, check=True, timeout=120
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    (answer,) = re.findall(r'<pre id="probed">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(answer.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


FIGURE = attention_figure(["The", "<script>", "<eos>"], ["Der", "Hund"], WEIGHTS)
READ = """const words = [...document.querySelectorAll("button")];
const state = () => [words.map((word) => word.className + ":" + (word.dataset.percent ?? "")),
                     document.querySelector(".status").textContent];
// A headless page may have no focus yet: then focus() selects an element, but sends no event.
const focus = HTMLElement.prototype.focus;
HTMLElement.prototype.focus = function () {
  const active = document.hasFocus();
  focus.call(this);
  if (!active) this.dispatchEvent(new FocusEvent("focus"));
};
const press = (key) =>
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
"""


@needs_chromium
def test_a_word_shows_its_attention(tmp_path: Path) -> None:
    script = """const states = [state()];
    words[3].focus(); states.push(state());
    press("ArrowRight"); states.push(state());
    press("ArrowUp"); states.push(state());
    words[0].dispatchEvent(new MouseEvent("mouseenter")); states.push(state());
    words[0].dispatchEvent(new MouseEvent("mouseleave")); states.push(state());
    words[4].click(); states.push(state());
    states.push(words.map((word) => word.tabIndex));
    return states;"""
    states = in_browser(tmp_path, page("T", [("", FIGURE)]), READ + script)
    right = [
        [":", "w6:62", "w4:38", ":", "chosen:"],
        "“Hund” attends to “<script>” 62 %, “<eos>” 38 %",
    ]
    up = [
        [":", "chosen:", ":", "w1:8", "w6:62"],
        "“<script>” is attended to by “Hund” 62 %, “Der” 8 %",
    ]
    assert states == [
        [[":"] * 5, "Point at a word, tap it, or use Tab and the arrow keys."],
        [
            ["w9:90", "w1:8", ":2", "chosen:", ":"],
            "“Der” attends to “The” 90 %, “<script>” 8 %, “<eos>” 2 %",
        ],
        right,
        up,
        [["chosen:", ":", ":", "w9:90", ":"], "“The” is attended to by “Der” 90 %"],
        up,
        right,
        [-1, 0, -1, -1, 0],
    ]


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    work = tmp_path_factory.mktemp("report")
    run = shutil.copytree(folder / "run", work / "run")
    outputs = work / "other.txt"
    outputs.write_text("Der Hund sieht <b>den</b> Baum.\n" * 40, encoding="utf-8")
    command([run], report=work, compare=outputs)
    return (work / "index.html").read_text(encoding="utf-8")


def test_a_report_has_all_sections_and_loads_nothing(report: str) -> None:
    links = re.findall(r'[ "](?:src|href|action|srcset|data)=.{23}', report)
    assert links == []
    assert re.findall(r"https?:|url\(|@import|fetch\(", report) == []
    headings = re.findall(r"<h2>(.*?)</h2>", report)
    shown = {"Scores", "Comparison", "By source length"}
    assert shown | {"Attention", "Origin of these results"} <= {*headings}
    assert len(headings) == len(set(headings))
    assert report.count("<figure ") >= 6
    assert "&quot;sha256&quot;: " in report


def test_a_file_of_translations_has_a_page_too_and_a_failure_leaves_other_files(
    nmt: Run, tmp_path: Path
) -> None:
    hypotheses, references = tmp_path / "h", tmp_path / "r"
    hypotheses.write_text("Ja, <i>gut</i>.\n", encoding="utf-8")
    references.write_text("Ja, <i>gut</i>!\n", encoding="utf-8")
    words = ["analyze", "--hypotheses", hypotheses, "--references", references]
    words += ["--compare", references, "--report"]
    assert nmt(*words, tmp_path / "report").status == 0
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "Ja, &lt;i&gt;gut&lt;/i&gt;." in text
    assert "i" not in Reading(text).tags
    failed = nmt(*words, hypotheses)
    error = f"nmt: {hypotheses / 'index.html'}: cannot be written (File exists)\n"
    assert (failed.status, failed.err) == (1, error)
    assert hypotheses.read_text(encoding="utf-8") == "Ja, <i>gut</i>.\n"


@needs_chromium
@pytest.mark.parametrize("size", ["360,740", "1280,900"])
def test_in_a_browser(report: str, tmp_path: Path, size: str) -> None:
    """No error on the console (`in_browser` checks it); words show their attention; nothing is
    wider than the screen.
    """
    script = """const [figure] = document.querySelectorAll("figure.attention");
    figure.querySelector(".output button").click();
    const tables = [...document.querySelectorAll("section > div > table")];
    const sides = (row) => [...row.cells].map((cell) => getComputedStyle(cell).textAlign).join();
    const aligned = (table) => sides(table.rows[0]) === sides(table.rows[1]);
    return [figure.querySelector(".status").textContent,
            document.documentElement.scrollWidth <= document.documentElement.clientWidth,
            tables.filter((table) => !aligned(table)).map((table) => table.textContent)];"""
    status, fits, misaligned = in_browser(tmp_path, report, script, f"--window-size={size}")
    assert " attends to " in status
    assert (fits, misaligned) == (True, [])


HOSTILE = "<script>alert(1)</script>"


def framed(translation: Translation) -> str:
    """The page inside of the frame that a notebook shows; it cannot reach the notebook."""
    text = translation._repr_html_() or ""
    tag = re.fullmatch(
        r'<iframe [^<>]*sandbox="allow-scripts"[^<>]*srcdoc="([^"]*)"></iframe>', text
    )
    assert tag is not None
    return unescape(tag[1])


def test_a_notebook_shows_source_text_and_attention_escaped() -> None:
    tokens = ("A", HOSTILE), ("Hund",)
    page = framed(Translation(f"A {HOSTILE}", 'Hund"', *tokens, log_prob=-1.25, attention=WEIGHTS))
    source = "<p>A &lt;script&gt;alert(1)&lt;/script&gt;</p>"
    for part in ("<h1>Hund&quot;</h1>", source, "<p>log-probability -1.25</p>"):
        assert part in page
    assert attention_figure(["A", HOSTILE, "<eos>"], ["Hund", "<eos>"], WEIGHTS) in page
    assert re.findall(r"https?:|url\(|@import|src=", page) == []
    assert page.count("<script>") == 1


@pytest.mark.parametrize(
    ("translation", "text"),
    [
        (Translation(""), "<h1>(empty)</h1>"),
        (
            # of a model without attention
            Translation("A", "B", ("A",), ("B",), attention=np.zeros((2, 2), np.float32)),
            "<h1>B</h1>",
        ),
        (
            Translation("A", "B", ("A",), ("B",), complete=False, src_cut=True),
            "log-probability 0.00, the source was truncated, the output was truncated",
        ),
    ],
)
def test_without_attention_a_notebook_shows_only_text(translation: Translation, text: str) -> None:
    page = framed(translation)
    assert text in page
    assert "<figure" not in page

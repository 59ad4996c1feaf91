"""The HTML page: no other files, any text escaped, and its script at work in a browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.analysis.html import attention_figure, page

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
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            value or ""
            for name, value in attrs
            if name in ("src", "href", "action", "srcset", "data")
        ]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] not in ("script", "style"):
            self.texts.append(data)


def test_percentages_stand_where_the_weights_are() -> None:
    text = attention_figure(["a", "￭b", "<eos>"], ["c", "d"], WEIGHTS, "A & B")
    first, second = re.findall(r'<tr><th scope="row">(.*)', text)
    assert re.split(r"<td[^>]*>", first)[1:] == ["90", "8", "2"]
    assert re.split(r"<td[^>]*>", second)[1:] == ["", "62", "38"]
    assert re.findall(r"<bdi>([^<]*)</bdi></button>", text) == ["a", "b", "&lt;eos&gt;", "c", "d"]
    assert "<figcaption>A &amp; B</figcaption>" in text


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=4
    )
)
def test_no_text_becomes_markup(tokens: list[str]) -> None:
    tokens = [
        *tokens,
        "<script>alert(1)</script>",
        "</style>",
        '"><img src=x onerror=alert(1)>',
        "</td>&amp;",
    ]
    weights = np.full((len(tokens), len(tokens)), 0.5)
    plain = page(
        "T", [("H", attention_figure(["x"] * len(tokens), ["x"] * len(tokens), weights, "C"))]
    )
    assert "default-src 'none'" in plain
    hostile = Reading(
        page(tokens[-4], [(tokens[-2], attention_figure(tokens, tokens, weights, tokens[-3]))])
    )
    assert hostile.tags == Reading(plain).tags
    assert all(token.removeprefix("￭") in "".join(hostile.texts) for token in tokens)


def in_browser(folder: Path, text: str, script: str, *flags: str) -> Any:
    """The return value of `script`, the body of a function, in the open page; fails on any message
    on the console.
    """
    probe = f"""<script>const probed = document.createElement("pre");
    probed.id = "probed"; probed.textContent = JSON.stringify((() => {{ {script} }})()); document.body.append(probed);</script>"""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", f"{probe}</body>"), encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}",
    ]
    command = [str(CHROMIUM), *options, *flags, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
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
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
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
    first, output, right, up, over, left, tapped, stops = in_browser(
        tmp_path, page("T", [("", FIGURE)]), READ + script
    )
    assert first == [[":"] * 5, "Point at a word, tap it, or use Tab and the arrow keys."]
    assert output == [
        ["w9:90", "w1:8", ":2", "chosen:", ":"],
        "“Der” attends to “The” 90 %, “<script>” 8 %, “<eos>” 2 %",
    ]
    assert right == [
        [":", "w6:62", "w4:38", ":", "chosen:"],
        "“Hund” attends to “<script>” 62 %, “<eos>” 38 %",
    ]
    assert up == [
        [":", "chosen:", ":", "w1:8", "w6:62"],
        "“<script>” is attended to by “Hund” 62 %, “Der” 8 %",
    ]
    assert over[1] == "“The” is attended to by “Der” 90 %"
    assert left == up
    assert tapped == right
    assert stops == [-1, 0, -1, -1, 0]

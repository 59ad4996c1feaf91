"""`nmt analyze --report`: one page that needs no other files and works in a browser."""

import re
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.extras.analysis.test_html import Reading, in_browser, needs_chromium


@pytest.fixture
def text(nmt: Run, run: Path, tmp_path: Path) -> str:
    outputs = tmp_path / "other.txt"
    outputs.write_text("Der Hund sieht <b>den</b> Baum.\n" * 40, encoding="utf-8")
    words = ["--report", tmp_path / "report", "--compare", outputs]
    result = nmt("analyze", run, *words, "--tokenized", "--metric", "BLEU")
    assert result.status == 0, result.err
    assert "By source length" not in result.out
    return (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


def test_it_has_all_sections_and_loads_nothing(text: str) -> None:
    read = Reading(text)
    assert [link[:22] for link in read.links] == ["data:image/png;base64,"]  # the curves
    assert re.findall(r"https?:|url\(|@import|fetch\(", text) == []
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    for heading in (
        "Scores",
        "Tokenized score",
        "Comparison",
        "Training of run",
        "By source length",
        "Attention",
        "Origin of these results",
    ):
        assert heading in headings
    assert len(headings) == len(set(headings))
    assert read.tags.count("figure") >= 6
    assert "&quot;sha256&quot;: " in text


def test_a_file_of_translations_has_a_page_too(nmt: Run, tmp_path: Path) -> None:
    for name, line in (("h", "Ja, <i>gut</i>."), ("r", "Ja, <i>gut</i>!")):
        (tmp_path / name).write_text(f"{line}\n", encoding="utf-8")
    files = ["--hypotheses", tmp_path / "h", "--references", tmp_path / "r"]
    words = ["--compare", tmp_path / "r", "--report", tmp_path / "report"]
    assert nmt("analyze", *files, *words).status == 0
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "Ja, &lt;i&gt;gut&lt;/i&gt;." in text
    assert "i" not in Reading(text).tags


def test_a_page_that_cannot_be_written_is_an_error_and_the_old_file_stays(
    nmt: Run, tmp_path: Path
) -> None:
    for name in ("h", "r"):
        (tmp_path / name).write_text("Ja.\n", encoding="utf-8")
    files = ["--hypotheses", tmp_path / "h", "--references", tmp_path / "r"]
    result = nmt("analyze", *files, "--report", tmp_path / "h")
    assert result.status == 1
    assert (
        result.err == f"nmt: {tmp_path / 'h' / 'index.html'}: cannot write the page (File exists)\n"
    )
    assert (tmp_path / "h").read_text(encoding="utf-8") == "Ja.\n"


@needs_chromium
@pytest.mark.parametrize("size", ["360,740", "1280,900"])
def test_in_a_browser(text: str, tmp_path: Path, size: str) -> None:
    """No error on the console (`in_browser` checks it); words show their attention; nothing is
    wider than the screen.
    """
    script = """const [figure] = document.querySelectorAll("figure.attention");
    figure.querySelector(".output button").click();
    const picture = document.querySelector("img");
    const tables = [...document.querySelectorAll("section > div > table")];
    const sides = (row) => [...row.cells].map((cell) => getComputedStyle(cell).textAlign).join();
    const aligned = (table) => sides(table.rows[0]) === sides(table.rows[1]);
    return [figure.querySelector(".status").textContent, picture.complete && picture.naturalWidth > 0,
            document.documentElement.scrollWidth <= document.documentElement.clientWidth,
            tables.filter((table) => !aligned(table)).map((table) => table.textContent)];"""
    status, drawn, fits, misaligned = in_browser(tmp_path, text, script, f"--window-size={size}")
    assert " attends to " in status
    assert drawn
    assert fits
    assert misaligned == []

"""A translation shows itself in a notebook."""

import re
from html import unescape

import numpy as np
import pytest

from nmt.decoding.translator import Translation
from nmt.extras.analysis.html import attention_figure

HOSTILE = "<script>alert(1)</script>"
ATTENTION = np.array([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], np.float32)


def frame_of(translation: Translation) -> tuple[dict[str, str], str]:
    """The attributes of the frame and the page inside."""
    text = translation._repr_html_() or ""
    tag = re.fullmatch(r"<iframe ([^<>]*)></iframe>", text)
    assert tag is not None
    attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag[1]))
    return attributes, unescape(attributes.pop("srcdoc"))


def test_source_text_and_attention_in_a_frame() -> None:
    translation = Translation(
        "A dog.", "Hund.", ("A", "dog"), ("Hund",), log_prob=-1.25, attention=ATTENTION
    )
    attributes, page = frame_of(translation)
    assert attributes["sandbox"] == "allow-scripts"  # it cannot reach the notebook
    assert "<h1>Hund.</h1>" in page
    assert "<p>A dog.</p>" in page
    assert "<p>log-probability -1.25</p>" in page
    assert attention_figure(["A", "dog", "<eos>"], ["Hund", "<eos>"], ATTENTION) in page
    assert re.findall(r"https?:|url\(|@import|src=", page) == []


def test_all_text_is_escaped() -> None:
    attention = np.array([[1.0, 0.0]], np.float32)
    _, page = frame_of(
        Translation(
            HOSTILE, HOSTILE + '"', (HOSTILE,), (HOSTILE,), attention=attention, complete=False
        )
    )
    assert HOSTILE not in page
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;" in page


@pytest.mark.parametrize(
    ("translation", "texts"),
    [
        (Translation(""), ["<h1>(empty)</h1>"]),
        (
            Translation("A", "B", ("A",), ("B",), attention=np.zeros((2, 2), np.float32)),
            ["<h1>B</h1>"],
        ),  # a model without attention
        (
            Translation("A", "B", ("A",), ("B",), complete=False, src_cut=True),
            ["log-probability 0.00, the source was truncated, the output was truncated"],
        ),
    ],
)
def test_without_attention_there_is_only_text(translation: Translation, texts: list[str]) -> None:
    _, page = frame_of(translation)
    assert all(text in page for text in texts)
    assert "<figure" not in page

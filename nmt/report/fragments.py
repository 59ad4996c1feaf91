"""Fragments for a page: scores, tables, pictures, and sentences side by side."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from nmt.metrics.scores import MetricScore
from nmt.metrics.table import Table

SHORT = 12  # rows; a longer table may go over two pages, and its values, which are long too, over two lines
ROLES = ("source", "reference", "output", "other")


def scores_fragment(scores: Sequence[MetricScore]) -> str:
    """Scores with their intervals; the signatures, which are long, each below its score."""
    rows = []
    for score in scores:
        interval = "" if score.interval is None else f"{score.interval[0]:.2f} to {score.interval[1]:.2f}"
        rows.append(
            f'<tr><th scope="row">{escape(score.name)}<td class="number"><strong>{score.value:.2f}</strong><td>{interval}'
            f'<tr><td colspan="3"><small>{escape(score.signature)}</small>'
        )
    heads = '<th scope="col">metric<th scope="col" class="number">score<th scope="col">95 % interval'
    return _table(f"<tr>{heads}", rows, "scores")


def table_fragment(table: Table) -> str:
    """Its heading stands above it elsewhere."""
    heads, *rows = (
        "<tr>" + "".join(_cell(tag, cell, number) for cell, number in zip(row, table.numeric_columns(), strict=True))
        for tag, row in [("th", table.columns), *(("td", row) for row in table.formatted_rows())]
    )
    note = f"<p>{escape(table.note)}</p>\n" if table.note else ""
    return note + _table(heads, rows, "short" if len(rows) <= SHORT else "values")


def sentences_fragment(sentences: Sequence[Mapping[str, Any]]) -> str:
    """Sentences in full, each as a list of what it is in the source, the reference, and so on."""
    return "\n".join(f'<p class="sentence">{"<br>".join(_sentence_lines(sentence))}</p>' for sentence in sentences)


def paragraphs_fragment(texts: Sequence[str]) -> str:
    """Plain text."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def picture_fragment(png: bytes, text: str) -> str:
    """A PNG within the page; `text` is for those who cannot see it."""
    data = b64encode(png).decode("ascii")
    return f'<img alt="{escape(text, quote=True)}" style="width: 100%; max-width: 34rem" src="data:image/png;base64,{data}">'


def _sentence_lines(sentence: Mapping[str, Any]) -> list[str]:
    gain = f", chrF {sentence['gain']:+.1f}" if "gain" in sentence else ""
    lines = [f"<small>sentence {sentence['sentence']:,}{gain}</small>"]
    return lines + [f"<small>{role}</small> <bdi>{escape(sentence[role])}</bdi>" for role in ROLES if role in sentence]


def _table(head: str, rows: Sequence[str], kind: str) -> str:
    lines = "\n".join(rows)
    return f'<div class="scroll {kind}"><table>\n<thead>{head}</thead>\n<tbody>\n{lines}\n</tbody></table></div>'


def _cell(tag: str, text: str, number: bool) -> str:
    kind = ' class="number"' if number else ""
    return f"<{tag}{kind}>{escape(text)}"

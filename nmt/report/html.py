"""One HTML page that needs nothing else: no network, no files beside it; for screen, phone and print, light and dark.

Fragments are HTML, made by the functions here and put together by `page`; whatever is text is escaped where it becomes a fragment.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.text.tokenizers import JOINER

# Nothing is fetched, whatever a fragment says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """The page.

    Args:
        title: plain text.
        sections: (heading, fragment) each; the heading is plain text, and may be empty.
    """
    body = "\n".join(
        f"<section>\n{f'<h2>{escape(heading)}</h2>' if heading else ''}\n{fragment}\n</section>" for heading, fragment in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<style>
{_beside("page.css")}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{body}
</main>
<script>
{_beside("page.js")}</script>
</body>
</html>
"""


def attention_figure(
    src_tokens: Sequence[str], tgt_tokens: Sequence[str], weights: NDArray[np.floating[Any]], caption: str = ""
) -> str:
    """A fragment: two lines of words, each of which shows where it looked, or what looked at it, and below them all weights.

    Without scripts it is a table of percentages, shaded.

    Args:
        src_tokens: S of them. tgt_tokens: T of them. caption: plain text.
        weights: [T, S], each 0..1: row t is what output token t looked at.
    """
    assert weights.shape == (len(tgt_tokens), len(src_tokens)), f"{weights.shape} for {len(tgt_tokens)} x {len(src_tokens)} tokens"
    sources, outputs = ([escape(token.removeprefix(JOINER)) for token in tokens] for tokens in (src_tokens, tgt_tokens))
    percent = np.rint(np.nan_to_num(weights) * 100).astype(int)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{token}</bdi>{"".join(map(_cell, row))}'
        for token, row in zip(outputs, percent.tolist(), strict=True)
    )
    heads = "".join(f'<th scope="col"><bdi>{token}</bdi>' for token in sources)
    return f"""<figure class="attention">
{f"<figcaption>{escape(caption)}</figcaption>" if caption else ""}
<div class="words source" role="group" aria-label="Source">{_words(sources)}</div>
<div class="words output" role="group" aria-label="Output">{_words(outputs)}</div>
<p class="looked" role="status"></p>
<details open><summary>All weights, in percent</summary>
<div class="scroll" tabindex="0" role="region" aria-label="All weights, in percent"><table>
<thead><tr><td>{heads}</thead>
<tbody>
{rows}
</tbody></table></div></details>
</figure>"""


def _words(tokens: Sequence[str]) -> str:
    """`tokens` are escaped. Buttons: a finger, a mouse and a keyboard reach them alike."""
    return " ".join(f'<button type="button"><bdi>{token}</bdi></button>' for token in tokens)


def _cell(percent: int) -> str:
    """HTML lets the end of a cell be left out, which halves a long page; so does leaving nothing at nothing."""
    shade = round(percent / 10)
    return f'<td class="w{shade}">{percent}' if shade else f"<td>{percent or ''}"


def _beside(name: str) -> str:
    return files("nmt.report").joinpath(name).read_text(encoding="utf-8")

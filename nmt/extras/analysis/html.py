"""HTML pages in one file: no network, no other files; for screen, phone and print, light and dark.

They show an analysis (`nmt analyze --report`), the attention of translations (`nmt translate
--attention`), and a translation in a notebook. `page` puts fragments of HTML together, in which all
text is escaped.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.commands.options import to_json
from nmt.decoding.translation import Translation
from nmt.evaluation.scores import score_table
from nmt.extras.analysis.results import Analysis
from nmt.files import explain_write_errors, write_text
from nmt.report.table import Table
from nmt.text.tokenizers import JOINER

# In a notebook, in pixels; the page scrolls where they are too small.
FRAME_HEIGHT, FIGURE_HEIGHT, ROW_HEIGHT, MAX_FRAME_HEIGHT = 160, 280, 24, 640
# The browser loads nothing from elsewhere, whatever a fragment contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_report(analysis: Analysis, folder: Path) -> None:
    """Write the page to `folder`, which is created if necessary. An old page stays until the new
    one is complete.

    Raises:
        DataError: the page cannot be written.
    """
    evaluation = analysis.evaluation
    sections = []
    for heading, scores, texts in (
        ("Scores", evaluation.scores, [evaluation.subject, *analysis.remarks]),
        ("Scores ignoring case", evaluation.lowercase_scores, []),
    ):
        if scores:
            sections.append((heading, f"{paragraphs(texts)}\n{table(score_table(scores))}"))
    for section in (*analysis.sections, *analysis.details):
        sections += [(data.heading, table(data)) for data in section.tables]
        sections += section.page
    facts = f'<div class="scroll"><pre>{escape(to_json(evaluation.facts))}</pre></div>'
    sections.append(("Origin of these results", facts))
    path = folder / "index.html"
    with explain_write_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, page(f"Evaluation of {evaluation.subject.split(',')[0]}", sections))


def notebook_view(translation: Translation) -> str:
    """Source, text and attention, for a notebook. It loads nothing."""
    cut = (
        ("the source was truncated", translation.src_cut),
        ("the output was truncated", not translation.complete),
    )
    facts = [f"log-probability {translation.log_prob:.2f}", *(fact for fact, holds in cut if holds)]
    fragments = [paragraphs([translation.source, ", ".join(facts)])]
    height = FRAME_HEIGHT
    if translation.has_attention:
        fragments.append(attention_figure(*translation.attention_labels, translation.attention))
        height += FIGURE_HEIGHT + ROW_HEIGHT * len(translation.attention)
    text = page(translation.text or "(empty)", [("", "\n".join(fragments))])
    # A frame keeps the styles of the two pages apart, and the scripts of this one from the other.
    # On one line, which Markdown leaves alone.
    content = escape(text, quote=True).replace("\n", "&#10;")
    style = f"width: 100%; height: {min(height, MAX_FRAME_HEIGHT)}px; border: 0"
    return (
        f'<iframe title="translation" sandbox="allow-scripts" style="{style}" '
        f'srcdoc="{content}"></iframe>'
    )


def attention_page(translations: Iterable[tuple[int, Translation]]) -> str:
    """A page with the attention of translations, each with its number."""
    return page(
        "Attention",
        [
            (
                f"{number}  {one.source}",
                attention_figure(*one.attention_labels, one.attention, one.text),
            )
            for number, one in translations
        ],
    )


def page(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """The whole page.

    Args:
        title: plain text.
        sections: (heading, fragment) each; the heading is plain text, and may be empty.
    """
    # It needs another extra, the other parts of an analysis do not.
    from nmt.extras.page.files import read

    body = "\n".join(
        f"<section>\n{f'<h2>{escape(heading)}</h2>' if heading else ''}\n{fragment}\n</section>"
        for heading, fragment in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<style>
{read("report.css")}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{body}
</main>
<script>
{read("attention.js")}</script>
</body>
</html>
"""


def paragraphs(texts: Sequence[str]) -> str:
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def table(data: Table) -> str:
    """A table with its note, without its heading."""
    classes = [' class="number"' if number else "" for number in data.numeric_columns()]
    lines = []
    for tag, row in [("th", data.columns), *(("td", row) for row in data.formatted_rows())]:
        cells = zip(classes, row, strict=True)
        lines.append("<tr>" + "".join(f"<{tag}{css}>{escape(text)}" for css, text in cells))
    note = f"<p>{escape(data.note)}</p>\n" if data.note else ""
    body = "\n".join(lines[1:])
    return (
        f'{note}<div class="scroll short"><table>\n<thead>{lines[0]}</thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def sentence_list(sentences: Sequence[Mapping[str, Any]]) -> str:
    """Each sentence with its number and its texts: source, reference, output, the other system's
    output.
    """
    paragraphs = []
    for sentence in sentences:
        gain = f", chrF {sentence['gain']:+.1f}" if "gain" in sentence else ""
        lines = [f"<small>sentence {sentence['sentence']:,}{gain}</small>"]
        lines += (
            f"<small>{key}</small> <bdi>{escape(sentence[key])}</bdi>"
            for key in ("source", "reference", "output", "other")
            if key in sentence
        )
        paragraphs.append(f'<p class="sentence">{"<br>".join(lines)}</p>')
    return "\n".join(paragraphs)


def attention_figure(
    src_tokens: Sequence[str],
    tgt_tokens: Sequence[str],
    weights: NDArray[np.floating[Any]],
    caption: str = "",
) -> str:
    """The source and the output as two lines of words, and a table of all weights.

    Pointing at a word shows the weights between it and the words of the other line. Without scripts
    the page shows only the table.

    Args:
        src_tokens: S tokens. tgt_tokens: T tokens. caption: plain text.
        weights: [T, S], each 0..1: row t is the attention of output token t.
    """
    source_words, output_words = (
        [escape(token.removeprefix(JOINER)) for token in tokens]
        for tokens in (src_tokens, tgt_tokens)
    )
    percent = np.rint(np.nan_to_num(weights) * 100).astype(int)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{word}</bdi>{"".join(map(_weight_cell, row))}'
        for word, row in zip(output_words, percent.tolist(), strict=True)
    )
    return f"""<figure class="attention">
{f"<figcaption>{escape(caption)}</figcaption>" if caption else ""}
<div class="words source" role="group" aria-label="Source">{_word_buttons(source_words)}</div>
<div class="words output" role="group" aria-label="Output">{_word_buttons(output_words)}</div>
<p class="status" role="status"></p>
<details open><summary>All weights in percent</summary>
<div class="scroll" tabindex="0" role="region" aria-label="All weights in percent"><table>
<thead><tr><td>{"".join(f'<th scope="col"><bdi>{word}</bdi>' for word in source_words)}</thead>
<tbody>
{rows}
</tbody></table></div></details>
</figure>"""


def _word_buttons(words: Sequence[str]) -> str:
    """`words` are escaped. Buttons work with finger, mouse and keyboard."""
    return " ".join(f'<button type="button"><bdi>{word}</bdi></button>' for word in words)


def _weight_cell(percent: int) -> str:
    """HTML allows a cell without an end tag, which halves a long page; cells of 0 % stay empty."""
    shade = round(percent / 10)
    return f'<td class="w{shade}">{percent}' if shade else f"<td>{percent or ''}"

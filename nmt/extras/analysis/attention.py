"""Statistics of the attention, pictures of it, how far it is from alignments made by hand."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.alignment import align
from nmt.decoding.translation import Translation
from nmt.errors import DataError
from nmt.evaluation.results import pick_across_lengths
from nmt.extras.analysis import html
from nmt.extras.analysis.results import Links, Section, Translated
from nmt.extras.analysis.sentences import class_names
from nmt.lines import read_lines
from nmt.report.table import Table

Floats = NDArray[np.floating[Any]]

POSITIONS = (1, 2, 4, 8, 16, 32)  # upper limits of the classes: position in the output
# sentences whose attention is shown: from short to long; of the best and of the worst ones
N_ACROSS_LENGTHS, N_EXTREMES_SHOWN = 6, 3

_LINK = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


def attention(translated: Translated) -> Section | None:
    """Statistics of the attention; nothing for a model without it."""
    attended = [one for one in translated.translations if one.has_attention]
    if not attended:
        return None
    return Section(tables=[by_position([one.attention for one in attended])])


def attention_figures(translated: Translated) -> Section | None:
    """The attention of some sentences, for the page; nothing for a model without it."""
    best, worst = translated.extremes
    across_lengths = pick_across_lengths(translated.sources, N_ACROSS_LENGTHS)
    figures = []
    for i in dict.fromkeys([*across_lengths, *best[:N_EXTREMES_SHOWN], *worst[:N_EXTREMES_SHOWN]]):
        one = translated.translations[i]
        if one.has_attention:
            caption = f"Sentence {i + 1:,}: {one.source}"
            figures.append(html.attention_figure(*one.attention_labels, one.attention, caption))
    return Section(page=[("Attention", "\n".join(figures))]) if figures else None


def by_position(attentions: Sequence[Floats]) -> Table:
    """How concentrated the attention is, by position in the output.

    Args:
        attentions: [T, S] for each sentence.
    """
    rows = []
    names = class_names(POSITIONS, 1)
    for name, low, high in zip(names, (0, *POSITIONS), (*POSITIONS, None), strict=True):
        weights = [row for attention in attentions for row in attention[low:high]]
        if weights:
            entropy = [_entropy(row) for row in weights]
            normalized = [
                value / np.log(len(row)) if len(row) > 1 else 0.0
                for value, row in zip(entropy, weights, strict=True)
            ]
            rows.append(
                (
                    name,
                    len(weights),
                    _mean(entropy),
                    _mean(normalized),
                    _mean([row.max() for row in weights]),
                )
            )
    return Table(
        "attention_by_position",
        "Attention by position in the output",
        ("position", "tokens", "entropy", "of even", "sharpness"),
        rows,
        "entropy in nats; of even: divided by the entropy of uniform attention (0: one source "
        "token, 1: all alike); sharpness: the largest weight",
        digits=2,
    )


def alignment_error(translated: Translated) -> Section | None:
    """The alignment error rate of the attention, while the decoder reads the references."""
    if (alignments := translated.alignments) is None:
        return None
    assert translated.translator is not None
    links = [
        frozenset(
            align(
                Translation(
                    pair.source, pair.text, pair.src_tokens, pair.tokens, attention=pair.attention
                ),
                translated.translator.tokenizers,
            )
        )
        for pair in translated.forced
    ]
    rate, n_sentences = alignment_error_rate(links, alignments)
    return Section(
        [
            f"alignment error rate {100 * rate:.1f} % on {n_sentences:,} sentences with reference "
            "alignments"
        ],
        values={"alignment_error_rate": rate, "aligned_sentences": n_sentences},
    )


def read_reference_alignments(
    path: Path, sources: Sequence[str], references: Sequence[str]
) -> list[tuple[Links, Links]]:
    """Read alignments in Pharaoh format, one sentence per line: "0-0 1-2" are sure links, "1?3" is
    a possible one. Returns the sure links of each sentence, and the possible ones, which
    include the sure ones.

    Words are separated by spaces and counted from 0.

    Raises:
        DataError: the file cannot be read, has another number of lines, holds something else, or
            a link goes beyond its sentence.
    """
    lines = read_lines(path)
    if len(lines) != len(sources):
        raise DataError(
            f"{path} has {len(lines)} lines, but there are {len(sources)} sentences to align"
        )
    alignments = []
    for number, (line, *texts) in enumerate(zip(lines, sources, references, strict=True), 1):
        sure, possible = set(), set()
        n_source, n_reference = (len(text.split()) for text in texts)
        for word in line.split():
            if not (link := _LINK.fullmatch(word)):
                raise DataError(
                    f"{path}, line {number}: {word!r} is not a link; write source-target, for "
                    "example 0-0, or 0?0 if it is possible"
                )
            pair = int(link[1]), int(link[3])
            if pair[0] >= n_source or pair[1] >= n_reference:
                raise DataError(
                    f"{path}, line {number}: {word} goes to a missing word; the source has "
                    f"{n_source} words and the reference {n_reference}, counted from 0"
                )
            possible.add(pair)
            if link[2] == "-":
                sure.add(pair)
        alignments.append((frozenset(sure), frozenset(possible)))
    return alignments


def alignment_error_rate(
    predicted: Sequence[Links], reference: Sequence[tuple[Links, Links]]
) -> tuple[float, int]:
    """AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), over all sentences with reference links (Och and
    Ney 2003, eq. 19); and the number of these sentences.

    A are the predicted links, S the sure and P the possible ones.

    Raises:
        DataError: no sentence has reference links, or nothing is predicted.
    """
    aligned = [
        (links, sure, possible)
        for links, (sure, possible) in zip(predicted, reference, strict=True)
        if possible
    ]
    n_links = sum(len(links) + len(sure) for links, sure, _ in aligned)
    if not any(predicted) or not n_links:
        raise DataError(
            "no alignment error rate: the reference alignments have no links, or the model attends "
            "to no word"
        )
    n_agreed = sum(len(links & sure) + len(links & possible) for links, sure, possible in aligned)
    return 1 - n_agreed / n_links, len(aligned)


def _entropy(weights: Floats) -> float:
    positive = weights[weights > 0].astype(np.float64)
    positive /= positive.sum()  # the weights of local attention do not sum to 1
    return float(-(positive * np.log(positive)).sum())


def _mean(values: Sequence[Any] | Floats) -> float:
    return float(np.mean(values))

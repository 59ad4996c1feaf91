"""Statistics of the attention, and pictures of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.evaluation.results import pick_across_lengths
from nmt.extras.analysis import html
from nmt.extras.analysis.results import Section, Translated
from nmt.extras.analysis.sentences import class_names
from nmt.report.table import Table

Floats = NDArray[np.floating[Any]]

POSITIONS = (1, 2, 4, 8, 16, 32)  # upper limits of the classes: position in the output
# sentences whose attention is shown: from short to long; of the best and of the worst ones
N_ACROSS_LENGTHS, N_EXTREMES_SHOWN = 6, 3


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


def _entropy(weights: Floats) -> float:
    positive = weights[weights > 0].astype(np.float64)
    positive /= positive.sum()  # the weights of local attention do not sum to 1
    return float(-(positive * np.log(positive)).sum())


def _mean(values: Sequence[Any] | Floats) -> float:
    return float(np.mean(values))

"""Statistics of the attention, pictures of it, and the exposure bias."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.evaluation_set import pick_across_lengths
from nmt.decoding.forced import score_pairs
from nmt.extras.analysis import html
from nmt.extras.analysis.groups import class_names
from nmt.extras.analysis.results import Section, Translated
from nmt.report.table import Table, TableCell

Floats = NDArray[np.floating[Any]]

POSITIONS = (1, 2, 4, 8, 16, 32)  # upper limits of the classes: position in the output
# (name, first index, end) each
POSITION_CLASSES = [
    *zip(class_names(POSITIONS, 1), (0, *POSITIONS), (*POSITIONS, None), strict=True)
]
# upper limits of the classes: attention to a source token, summed over the output
TOTAL_ATTENTION = (0.1, 0.5, 1.5, 2.0)
IGNORED, TOO_MUCH = TOTAL_ATTENTION[0], TOTAL_ATTENTION[-1]
N_TOKENS = 10  # rows of the table of ignored tokens
# sentences whose attention is shown: from short to long; of the best and of the worst ones
N_ACROSS_LENGTHS, N_EXTREMES_SHOWN = 6, 3


def attention(translated: Translated) -> Section | None:
    """Statistics of the attention; nothing for a model without it."""
    attended = [one for one in translated.translations if one.has_attention]
    if not attended:
        return None
    weights, tokens = [one.attention for one in attended], [one.src_tokens for one in attended]
    return Section(
        tables=[by_position(weights), by_coverage(weights), most_ignored(weights, tokens)]
    )


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


def exposure_bias(translated: Translated) -> Section:
    """How much the loss rises when the decoder continues from its own output."""
    assert translated.translator is not None
    pairs = [(pair.source, pair.text) for pair in translated.forced]
    free_running = score_pairs(translated.translator, pairs, free_running=True)
    losses = (
        [-np.array(pair.token_log_probs) for pair in scored]
        for scored in (translated.forced, free_running)
    )
    return Section(tables=[loss_by_position(*losses)])


def by_position(attentions: Sequence[Floats]) -> Table:
    """How concentrated the attention is, by position in the output.

    Args:
        attentions: [T, S] for each sentence.
    """
    rows = []
    for name, low, high in POSITION_CLASSES:
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
    note = (
        "entropy in nats; of even: divided by the entropy of uniform attention (0: one source "
        "token, 1: all alike); sharpness: the largest weight"
    )
    columns = ("position", "tokens", "entropy", "of even", "sharpness")
    heading = "Attention by position in the output"
    return Table("attention_by_position", heading, columns, rows, note, digits=2)


def by_coverage(attentions: Sequence[Floats]) -> Table:
    """The attention to each source token, summed over the output; each output token gives 1 in all.

    Args:
        attentions: [T, S] for each sentence; the last column, which belongs to <eos>, is left out.
    """
    totals = np.concatenate([attention.sum(0)[:-1] for attention in attentions])
    classes = np.searchsorted(TOTAL_ATTENTION, totals)
    lows = [0.0, *TOTAL_ATTENTION]
    names = [f"{low:g} to {high:g}" for low, high in zip(lows, TOTAL_ATTENTION, strict=False)]
    names = [f"{names[0]} (ignored)", *names[1:], f"above {TOO_MUCH:g} (too much)"]
    counts = np.bincount(classes, minlength=len(names)).tolist()
    rows = [
        (name, count, 100 * count / max(1, len(totals)))
        for name, count in zip(names, counts, strict=True)
    ]
    note = "each output token distributes an attention of 1 over the source tokens"
    heading = "Total attention to source tokens"
    return Table("attention_coverage", heading, ("attention", "tokens", "%"), rows, note)


def most_ignored(attentions: Sequence[Floats], sources: Sequence[Sequence[str]]) -> Table:
    """The source tokens that the attention ignores most often.

    Args:
        attentions: [T, S] for each sentence. sources: its S - 1 tokens.
    """
    n_occurrences, n_ignored = Counter[str](), Counter[str]()
    for attention, tokens in zip(attentions, sources, strict=True):
        n_occurrences.update(tokens)
        n_ignored.update(
            token
            for token, total in zip(tokens, attention.sum(0), strict=False)
            if total <= IGNORED
        )
    rows = [
        (token, count, n_occurrences[token], 100 * count / n_occurrences[token])
        for token, count in n_ignored.most_common(N_TOKENS)
    ]
    columns = ("token", "never looked at", "of", "%")
    note = f"never looked at: a total attention of at most {IGNORED:g}"
    return Table("attention_neglected", "Source tokens ignored most often", columns, rows, note)


def loss_by_position(teacher_forced: Sequence[Floats], free_running: Sequence[Floats]) -> Table:
    """How much the loss rises when the decoder continues from its own output instead of the
    reference, by position.

    Args:
        teacher_forced, free_running: [T] for each sentence: the loss of the reference's tokens in
            nats, with the reference and with the model's own output as the decoder's input.
    """
    rows: list[tuple[TableCell, ...]] = []
    for name, low, high in POSITION_CLASSES:
        pairs = [
            np.stack([forced[low:high], free[low:high]])
            for forced, free in zip(teacher_forced, free_running, strict=True)
        ]
        forced, free = np.concatenate(pairs, axis=1)
        if len(forced):
            rows.append(
                (name, len(forced), _mean(forced), _mean(free), _mean(free) - _mean(forced))
            )
    note = (
        "loss in nats per token of the reference; the decoder reads the reference "
        "(teacher-forced) or its own most probable tokens (free); a correct translation with "
        "another word order has a loss too"
    )
    columns = ("position", "tokens", "teacher-forced", "free", "gap")
    heading = "Exposure bias: loss by position"
    return Table("exposure_bias", heading, columns, rows, note, digits=2)


def _entropy(weights: Floats) -> float:
    positive = weights[weights > 0].astype(np.float64)
    positive /= positive.sum()  # the weights of local attention do not sum to 1
    return float(-(positive * np.log(positive)).sum())


def _mean(values: Sequence[Any] | Floats) -> float:
    return float(np.mean(values))

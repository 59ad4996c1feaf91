"""What the attention did: how sharp it was, and which source words it left out."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.metrics.table import Cell, Table

Floats = NDArray[np.floating[Any]]

POSITIONS = (1, 2, 4, 8, 16, 32)  # of the output, up to
COVERAGES = (0.1, 0.5, 1.5, 2.0)  # attention that a source token got in all, up to
NEGLECTED, TOO_MUCH = COVERAGES[0], COVERAGES[-1]
N_WORDS = 10


def by_position(attentions: Sequence[Floats]) -> Table:
    """How sharp the attention was, by position in the output.

    Args:
        attentions: of each sentence, [T, S].
    """
    rows = []
    for name, low, high in position_classes():
        weights = [row for attention in attentions for row in attention[low:high]]
        if weights:
            entropy = [_entropy(row) for row in weights]
            spread = [value / np.log(len(row)) if len(row) > 1 else 0.0 for value, row in zip(entropy, weights, strict=True)]
            rows.append((name, len(weights), _mean(entropy), _mean(spread), _mean([row.max() for row in weights])))
    note = "entropy in nats, and as a share of the even spread; sharpness: the largest weight"
    columns = ("position", "tokens", "entropy", "of even", "sharpness")
    return Table("attention_by_position", "Attention by position in the output", columns, rows, note, digits=2)


def by_coverage(attentions: Sequence[Floats]) -> Table:
    """How much attention source tokens got over the whole output; 1 is what one output token has to give.

    The last column of each, which belongs to <eos>, is left out.
    """
    got = np.concatenate([attention.sum(0)[:-1] for attention in attentions])
    classes = np.searchsorted(COVERAGES, got)
    bounds = [0.0, *COVERAGES]
    names = [f"{low:g} to {high:g}" for low, high in zip(bounds, COVERAGES, strict=False)]
    names = [f"{names[0]}: never looked at", *names[1:], f"above {TOO_MUCH:g}: looked at too much"]
    counts = np.bincount(classes, minlength=len(names)).tolist()
    rows = [(name, count, 100 * count / max(1, len(got))) for name, count in zip(names, counts, strict=True)]
    return Table("attention_coverage", "Attention that source tokens got in all", ("attention", "tokens", "%"), rows)


def neglected(attentions: Sequence[Floats], sources: Sequence[Sequence[str]]) -> Table:
    """The source tokens that were most often never looked at.

    Args:
        attentions: of each sentence, [T, S]. sources: its S - 1 tokens.
    """
    met, missed = Counter[str](), Counter[str]()
    for attention, tokens in zip(attentions, sources, strict=True):
        met.update(tokens)
        missed.update(token for token, got in zip(tokens, attention.sum(0), strict=False) if got <= NEGLECTED)
    rows = [(token, count, met[token], 100 * count / met[token]) for token, count in missed.most_common(N_WORDS)]
    columns = ("token", "never looked at", "of", "%")
    return Table("attention_neglected", "Source tokens that were most often never looked at", columns, rows)


def exposure(forced: Sequence[Floats], free: Sequence[Floats]) -> Table:
    """The exposure bias, by position: what it costs the model to go on from its own output rather than from the reference.

    Args:
        forced, free: of each sentence, [T] nats: the loss of the reference's tokens after the reference, and after its own.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, low, high in position_classes():
        pairs = [np.stack([one[low:high], two[low:high]]) for one, two in zip(forced, free, strict=True)]
        led, alone = np.concatenate(pairs, axis=1)
        if len(led):
            rows.append((name, len(led), _mean(led), _mean(alone), _mean(alone) - _mean(led)))
    note = "nats per token of the reference, fed the reference and fed its own likeliest tokens; words in another order cost too"
    columns = ("position", "tokens", "teacher-forced", "free", "gap")
    return Table("exposure_bias", "Loss by position, teacher-forced and free-running", columns, rows, note, digits=2)


def position_classes() -> list[tuple[str, int, int | None]]:
    """Name, first place and end of each class of positions."""
    starts = [0, *POSITIONS]
    found: list[tuple[str, int, int | None]] = [
        (f"{low + 1}" if low + 1 == high else f"{low + 1}-{high}", low, high) for low, high in zip(starts, POSITIONS, strict=False)
    ]
    return [*found, (f"{starts[-1] + 1} and more", starts[-1], None)]


def _entropy(weights: Floats) -> float:
    positive = weights[weights > 0].astype(np.float64)
    positive /= positive.sum()  # a window's weights do not add up to 1
    return float(-(positive * np.log(positive)).sum())


def _mean(values: Sequence[Any] | Floats) -> float:
    return float(np.mean(values))

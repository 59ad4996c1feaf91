"""Signs that sentence pairs are not what the configuration says: swapped, shifted, mostly dropped,
known from another set, with too rare words. A language is known by the stop words that spaCy lists
for it.
"""

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from nmt.data.languages import count_words
from nmt.data.splitting import Fingerprints, Kind, are_among
from nmt.errors import DataError, NmtWarning
from nmt.text.tokenizers import Side
from nmt.text.vocabulary import SPECIALS, Vocabulary

MAX_SHIFT = 3

_WORD = re.compile(r"\w{3,}|\d+")


Pair = tuple[str, str]


def check_order(
    name: str,
    unit: str,
    line_range: tuple[int, int],
    languages: tuple[str, str],
    cleaned: Sequence[Pair],
    decoded: Sequence[Pair],
) -> None:
    """Raises: DataError if the languages of a chunk are swapped, or its sides are shifted.

    Args:
        unit: what a row is called. line_range: the first and the last row.
        decoded: the pairs of neighboring rows.
    """
    place = f"({unit}s {line_range[0]:,} to {line_range[1]:,})"
    if are_swapped(cleaned, languages):
        src, tgt = languages
        raise DataError(
            f"{name}: the languages are swapped: the {src} sentences are {tgt}, and the {tgt} "
            f"sentences are {src} {place}; swap `columns` or `files` of this source in the "
            "configuration, or correct the file"
        )
    if shift := find_shift(decoded):
        rows = unit if abs(shift) == 1 else f"{abs(shift)} {unit}s"
        raise DataError(
            f"{name}: the pairs are shifted: most sources belong to the target {rows} "
            f"{'below' if shift > 0 else 'above'} {place}; find the missing or added {unit} "
            "before this place, and correct the file"
        )


def are_swapped(pairs: Sequence[Pair], languages: tuple[str, str]) -> bool:
    """Whether most of the words that only one of the languages has are on the side of the other: at
    least 80 % of at least 20 words in a sample.
    """
    right = wrong = 0
    for src, tgt in pairs[:: -(-len(pairs) // 256) or 1]:
        src_right, src_wrong = count_words(src, languages)
        tgt_wrong, tgt_right = count_words(tgt, languages)
        right += src_right + tgt_right
        wrong += src_wrong + tgt_wrong
    return right + wrong >= 20 and wrong >= 0.8 * (right + wrong)


def find_shift(pairs: Sequence[Pair]) -> int:
    """By how many rows the targets stand too low; negative if too high; 0 if the pairs belong
    together, or it is not clear.

    A sentence and its translation have similar lengths, the same punctuation at the end, and names
    and numbers in common. The shift is the one with which they have clearly more of that (a z-test
    over the rows, at least 30).
    """
    src, tgt = ([_traits(pair[side]) for pair in pairs[:1024]] for side in (0, 1))
    rows = range(MAX_SHIFT, len(src) - MAX_SHIFT)
    if len(rows) < 30:
        return 0
    usual = float(np.median([one[0] - other[0] for one, other in zip(src, tgt, strict=True)]))

    def similarity(shift: int) -> npt.NDArray[np.float64]:
        shifted = [(src[row], tgt[row + shift]) for row in rows]
        return np.array(
            [
                -2 * abs(one[0] - other[0] - usual)
                + (one[1] == other[1])
                + min(2, len(one[2] & other[2]))
                for one, other in shifted
            ]
        )

    present = similarity(0)
    z_scores = {}
    for shift in (*range(-MAX_SHIFT, 0), *range(1, MAX_SHIFT + 1)):
        gain = similarity(shift) - present
        z_scores[shift] = float(gain.mean() / (gain.std() / math.sqrt(len(gain)) + 1e-9))
    best = max(z_scores, key=lambda shift: z_scores[shift])
    # Aligned files are far below 0; a random order exceeds 5 once in a million chunks.
    return best if z_scores[best] >= 5 else 0


def _traits(text: str) -> tuple[float, str, frozenset[str]]:
    """The logarithm of the length, the punctuation at the end, and the words and numbers."""
    text = text.rstrip()
    return (
        math.log(len(text) + 10),
        text[-1:] if text[-1:] in "?!.:…" else "",
        frozenset(_WORD.findall(text.lower())),
    )


def check_dropped(name: str, reasons: Mapping[str, int], n_read: int) -> None:
    """Warn if cleaning dropped most pairs."""
    if sum(reasons.values()) > n_read / 2:
        listing = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        warn(
            f"{name}: most of its {n_read:,} pairs are dropped: {listing}; check the file, and "
            "data.cleaning"
        )


def check_held_out(
    names: Mapping[str, str],
    fingerprints: Mapping[str, Callable[[Kind], Fingerprints]],
    without: Mapping[str, Sequence[int]],
) -> None:
    """Check dev and test sets from their own files: all translated, no pairs of another set.

    Args:
        names: of the files.
        fingerprints: read those of each set, see `reading.Pairs`; the training data first.
        without: the numbers of the pairs of each set that lack a translation.

    Raises:
        DataError: no pair of a set has a translation.
    """
    train, *held_out = fingerprints
    for index, name in enumerate(held_out):
        if len(without[name]) == len(fingerprints[name]("pair")):
            raise DataError(
                f"{names[name]}: no sentence in it has a translation; check data.{name}"
            )
        if without[name]:
            warn(
                f"{names[name]}: {len(without[name]):,} pairs have a side that is empty or stands "
                f"for a missing translation (the first: pair {without[name][0]:,}); correct them"
            )
        for other in (train, *held_out[:index]):
            is_shared = are_among(fingerprints[name]("pair"), fingerprints[other]("pair"))
            if is_shared.mean() > 0.1:
                warn(
                    f"{names[name]}: {int(is_shared.sum()):,} of its {len(is_shared):,} pairs are "
                    f"also in data.{other}, which makes its scores worthless; take other pairs for "
                    f"data.{name}"
                )


def check_vocabulary(side: str, n_tokens: int, coverage: float) -> None:
    """Raise a DataError if no token is in the vocabulary; warn if few tokens of the dev set are."""
    remedy = "raise vocabulary.max_size, or lower vocabulary.min_frequency"
    if not n_tokens:
        raise DataError(f"the {side} vocabulary has no token; {remedy}")
    if coverage < 0.5:
        warn(
            f"the {side} vocabulary knows only {coverage:.0%} of the tokens of the dev set; "
            f"{remedy}"
        )


def check_subwords(vocabularies: Mapping[Side, Vocabulary], size: int) -> None:
    """Warn if most learned pieces are too rare in the training data to be learned."""
    # All characters are pieces; for more, ten tokens each: a guess that few are then rare.
    n_characters = max(len({*chain(*[*each][len(SPECIALS) :])}) for each in vocabularies.values())
    n_tokens = min(sum(each.counts[len(SPECIALS) :]) for each in vocabularies.values())
    better = math.ceil(max(1.3 * n_characters, n_tokens / 10) / 10) * 10
    for side, vocabulary in vocabularies.items():
        counts = vocabulary.counts[len(SPECIALS) :]
        n_rare = sum(count < 3 for count in counts)
        if n_rare > len(counts) / 2 and better < 0.9 * size:
            warn(
                f"tokenizer.size: {size:,} is too large for this data: {n_rare:,} of the "
                f"{len(counts):,} {side} subwords occur fewer than three times in the training "
                f"data; set it to about {better:,}"
            )
            break


def warn(text: str) -> None:
    """Warn the user."""
    warnings.warn(text, NmtWarning, stacklevel=3)

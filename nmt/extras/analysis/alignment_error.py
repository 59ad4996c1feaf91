"""Alignment error rate: how far the attention is from alignments made by hand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.decoding.alignment import align
from nmt.decoding.translator import Translation
from nmt.errors import DataError
from nmt.extras.analysis.results import Section, Translated
from nmt.lines import read_lines

Links = frozenset[tuple[int, int]]  # (source word, target word), counted from 0

_LINK = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


@dataclass(frozen=True)
class ReferenceAlignment:
    """The links of one sentence pair. possible: the sure ones and the ambiguous ones."""

    sure: Links
    possible: Links


def alignment_error(translated: Translated) -> Section | None:
    """The alignment error rate of the attention, while the decoder reads the references."""
    if (alignments := translated.alignments) is None:
        return None
    assert translated.translator is not None
    links = []
    for pair in translated.forced:
        tokens = pair.src_tokens, pair.tokens
        forced = Translation(pair.source, pair.text, *tokens, attention=pair.attention)
        links.append(frozenset(align(forced, translated.translator.tokenizers)))
    rate, sentences = alignment_error_rate(links, alignments)
    remark = (
        f"alignment error rate {100 * rate:.1f} % on {sentences:,} sentences with reference "
        "alignments"
    )
    return Section([remark], values={"alignment_error_rate": rate, "aligned_sentences": sentences})


def read_reference_alignments(
    path: Path, sources: Sequence[str], references: Sequence[str]
) -> list[ReferenceAlignment]:
    """Read alignments in Pharaoh format, one sentence per line: "0-0 1-2" are sure links, "1?3" is
    a possible one.

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
        alignments.append(ReferenceAlignment(frozenset(sure), frozenset(possible)))
    return alignments


def alignment_error_rate(
    predicted: Sequence[Links], reference: Sequence[ReferenceAlignment]
) -> tuple[float, int]:
    """AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), over all sentences with reference links (Och and
    Ney 2003, eq. 19); and the number of these sentences.

    A are the predicted links, S the sure and P the possible ones.

    Raises:
        DataError: no sentence has reference links, or nothing is predicted.
    """
    pairs = [
        (links, alignment)
        for links, alignment in zip(predicted, reference, strict=True)
        if alignment.possible
    ]
    n_links = sum(len(links) + len(alignment.sure) for links, alignment in pairs)
    if not any(predicted) or not n_links:
        raise DataError(
            "no alignment error rate: the reference alignments have no links, or the model attends "
            "to no word"
        )
    n_agreed = sum(
        len(links & alignment.sure) + len(links & alignment.possible) for links, alignment in pairs
    )
    return 1 - n_agreed / n_links, len(pairs)

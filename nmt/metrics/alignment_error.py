"""How far the attention is from alignments made by hand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.data.test_set import read_text
from nmt.errors import DataError

Links = frozenset[tuple[int, int]]  # (source word, target word), counted from 0

_LINK = re.compile(r"(\d+)([-?])(\d+)")


@dataclass(frozen=True)
class Gold:
    """The links of a sentence: those that are sure, and those that are at least possible, the sure ones among them."""

    sure: Links
    possible: Links


@dataclass(frozen=True)
class AlignmentError:
    """rate: AER, 0..1. sentences: that have links by hand."""

    rate: float
    sentences: int


def read_gold(path: Path, n_sentences: int) -> list[Gold]:
    """Alignments in Pharaoh form, a line a sentence: "0-0 1-2" are sure, "1?3" possible; words are what spaces part.

    Raises:
        DataError: the file cannot be read, has other than as many lines, or something else in it.
    """
    lines = read_text(path)
    if len(lines) != n_sentences:
        raise DataError(f"{path} has {len(lines)} lines, but there are {n_sentences} sentences to align")
    return [_parse(path, number, line) for number, line in enumerate(lines, 1)]


def check_links(gold: Sequence[Gold], sources: Sequence[str], references: Sequence[str]) -> None:
    """Raises: DataError if a link goes to a word that is not there: of a file that counts from 1, or of other sentences."""
    for number, (its, source, reference) in enumerate(zip(gold, sources, references, strict=True), 1):
        n_source, n_reference = len(source.split()), len(reference.split())
        if any(one >= n_source or other >= n_reference for one, other in its.possible):
            raise DataError(
                f"the alignments by hand, line {number}: a link to a word that is not there; the source has {n_source} and the "
                f"reference {n_reference} words, counted from 0 and parted by spaces"
            )


def alignment_error(found: Sequence[Links], gold: Sequence[Gold]) -> AlignmentError:
    """AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), over all sentences with links by hand (Och and Ney 2003, eq. 19).

    Raises:
        DataError: there are none.
    """
    pairs = [(links, its) for links, its in zip(found, gold, strict=True) if its.possible]
    if not pairs:
        raise DataError("there is not one link by hand to compare the attention with")
    agreed = sum(len(links & its.sure) + len(links & its.possible) for links, its in pairs)
    if not any(found):
        raise DataError("the model looks at no word, so that there is nothing to compare with the alignments by hand")
    return AlignmentError(1 - agreed / sum(len(links) + len(its.sure) for links, its in pairs), len(pairs))


def _parse(path: Path, number: int, line: str) -> Gold:
    sure, possible = set(), set()
    for word in line.split():
        if not (link := _LINK.fullmatch(word)):
            raise DataError(
                f"{path}, line {number}: {word!r} is no link; write source-target, such as 0-0, or 0?0 if it is possible"
            )
        pair = int(link[1]), int(link[3])
        possible.add(pair)
        if link[2] == "-":
            sure.add(pair)
    return Gold(frozenset(sure), frozenset(possible))

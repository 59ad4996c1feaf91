"""Check that the attention of a trained `unshuffle` run is the permutation that sorts the numbers.

    python scripts/check_unshuffle.py [RUN] [--prepared PATH] [--least SHARE]

Translates the test split. For each number of the sorted reference, it checks whether the attention
of that step is strongest at the number's position in the source, whatever the model wrote. Steps
that an output does not reach count as wrong. Exit status 1 if the share of correct steps is below
SHARE.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import read_sentences
from nmt.decoding.translation import Translation
from nmt.errors import NmtError
from nmt.run.folder import check_same_data, load_run_config
from nmt.run.load import load_translator

RUN = Path("runs/unshuffle")
MIN_SHARE = 0.95


@dataclass(frozen=True)
class Tally:
    """Counts: sentences, exactly correct sentences; steps, steps with correct attention."""

    sentences: int = 0
    exact: int = 0
    steps: int = 0
    aligned: int = 0

    @property
    def exact_share(self) -> float:
        return self.exact / self.sentences

    @property
    def aligned_share(self) -> float:
        return self.aligned / self.steps


def count(translations: Iterable[Translation], references: Iterable[str]) -> Tally:
    """Count over all sentences; `references` are the sorted numbers of the sources."""
    sentences = exact = steps = aligned = 0
    for translation, reference in zip(translations, references, strict=True):
        permutation = sorting_permutation(translation.source.split())
        sentences += 1
        exact += translation.text == reference
        steps += len(permutation)
        aligned += count_aligned(translation.attention, permutation)
    return Tally(sentences, exact, steps, aligned)


def sorting_permutation(numbers: Sequence[str]) -> list[int]:
    """The position of the smallest number, then of the next one: what the steps of the output
    should attend to.
    """
    return sorted(range(len(numbers)), key=lambda position: int(numbers[position]))


def count_aligned(attention: NDArray[np.floating[Any]], permutation: Sequence[int]) -> int:
    """The number of rows of `attention` [T, S] whose largest weight is at the permutation's
    position; further rows do not count.
    """
    positions = attention.argmax(1).tolist()[: len(permutation)]
    return sum(
        position == expected for position, expected in zip(positions, permutation, strict=False)
    )


def check(run: Path, prepared: Path | None = None) -> Tally:
    """Translate the test split of the run's data, and count.

    Raises:
        NmtError: the run or its data is missing, or the data is not its training data.
    """
    translator = load_translator(run)
    prepared = prepared or load_run_config(run).prepared_folder
    check_same_data(run, prepared)
    return count(
        translator.translate(read_sentences(prepared, "test", "src")),
        read_sentences(prepared, "test", "tgt"),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Check that the attention of a trained unshuffle run is the permutation."
    )
    parser.add_argument(
        "run", type=Path, nargs="?", default=RUN, help="the run folder (%(default)s)"
    )
    parser.add_argument("--prepared", type=Path, help="the prepared folder, if you moved it")
    parser.add_argument(
        "--least",
        type=float,
        default=MIN_SHARE,
        help="minimum share of steps with correct attention (%(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        tally = check(options.run, options.prepared)
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"sorted without an error          {tally.exact_share:7.2%} of {tally.sentences:,} "
        "sentences"
    )
    print(f"attention is the permutation at  {tally.aligned_share:7.2%} of {tally.steps:,} numbers")
    if tally.aligned_share < options.least:
        print(
            (
                f"{options.run}: the attention is the permutation at less than "
                f"{options.least:.2%} of "
                "the numbers"
            ),
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

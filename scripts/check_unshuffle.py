"""Check that the attention of a trained `unshuffle` run is the permutation that sorts the numbers.

    python scripts/check_unshuffle.py [RUN] [--prepared PATH] [--least SHARE]

Translates the test split, and counts the numbers of the sorted references at whose step the attention is strongest where they
stand in the source, whatever was written. Steps that an output does not reach count as wrong. Exit status 1 below the least share.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import read_lines
from nmt.decoding.translation import Translation
from nmt.errors import NmtError
from nmt.run.folder import check_same_data, load_run_config
from nmt.run.load import load_translator

RUN = Path("runs/unshuffle")
LEAST = 0.95


@dataclass(frozen=True)
class Tally:
    """How many sentences there are, how many are exactly right; how many steps, how many look where they should."""

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
    """`references` are the sorted numbers of the translations' sources."""
    sentences = exact = steps = aligned = 0
    for translation, reference in zip(translations, references, strict=True):
        permutation = sorting_permutation(translation.source.split())
        sentences += 1
        exact += translation.text == reference
        steps += len(permutation)
        aligned += count_aligned(translation.attention, permutation)
    return Tally(sentences, exact, steps, aligned)


def sorting_permutation(numbers: Sequence[str]) -> list[int]:
    """Where the smallest number stands, then the next: what the steps of the output should look at."""
    return sorted(range(len(numbers)), key=lambda position: int(numbers[position]))


def count_aligned(attention: NDArray[np.floating[Any]], permutation: Sequence[int]) -> int:
    """How many rows of `attention` [T, S] are largest where `permutation` says; rows beyond it do not count."""
    found = attention.argmax(1).tolist()[: len(permutation)]
    return sum(position == wanted for position, wanted in zip(found, permutation, strict=False))


def check(run: Path, prepared: Path | None = None) -> Tally:
    """Translate the test split of the run's data, and count.

    Raises:
        NmtError: there is no run, its data is not there, or is not what it was trained on.
    """
    translator = load_translator(run)
    prepared = prepared or load_run_config(run).prepared_folder
    check_same_data(run, prepared)
    return count(translator.translate(read_lines(prepared, "test", "src")), read_lines(prepared, "test", "tgt"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check that the attention of a trained unshuffle run is the permutation.")
    parser.add_argument("run", type=Path, nargs="?", default=RUN, help="the run folder (%(default)s)")
    parser.add_argument("--prepared", type=Path, help="where the prepared data is, if it was moved")
    parser.add_argument(
        "--least", type=float, default=LEAST, help="the share of steps that must look where they should (%(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        tally = check(options.run, options.prepared)
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"sorted without a fault           {tally.exact_share:7.2%} of {tally.sentences:,} sentences")
    print(f"attention is the permutation at  {tally.aligned_share:7.2%} of {tally.steps:,} numbers")
    if tally.aligned_share < options.least:
        print(f"{options.run}: the attention is the permutation at less than {options.least:.2%} of the numbers", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

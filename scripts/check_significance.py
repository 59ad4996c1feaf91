"""Measure how often the paired test finds a difference between systems that do not differ: at the
level 0.05, 5 % is right.

    python scripts/check_significance.py --references test.de one.de other.de

Pairs without a difference come from the translations of two real systems: for each randomly drawn
sentence, chance decides which of the two outputs goes to which system.
"""

import argparse
import sys
from collections.abc import Sequence
from math import sqrt
from pathlib import Path

import numpy as np

from nmt.errors import NmtError
from nmt.evaluation.results import read_files
from nmt.extras.analysis.comparison import Difference, compare

ALPHA = 0.05


def null_pair(
    outputs: Sequence[Sequence[str]],
    reference: Sequence[str],
    size: int,
    random: np.random.Generator,
) -> Difference:
    """Compare two systems that differ only by chance, in BLEU."""
    sentences, swaps = random.integers(len(reference), size=size), random.integers(2, size=size)
    first, second = (
        [outputs[swap ^ system][i] for i, swap in zip(sentences, swaps, strict=True)]
        for system in (0, 1)
    )
    return compare(first, second, [[reference[i] for i in sentences]], ["BLEU"], trials=500)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Measure how often the test finds a difference where there is none."
    )
    parser.add_argument(
        "outputs", nargs=2, type=Path, help="translations of two systems, one per line"
    )
    parser.add_argument("--references", type=Path, required=True, help="references, one per line")
    parser.add_argument(
        "--pairs", type=int, default=400, help="number of comparisons (%(default)s)"
    )
    parser.add_argument(
        "--sentences", type=int, default=500, help="sentences in a comparison (%(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        reference, outputs = read_files(options.references, options.outputs)
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    random = np.random.default_rng(1)
    differences = [
        null_pair(outputs, reference, options.sentences, random) for _ in range(options.pairs)
    ]
    share = sum(one.p_randomisation < ALPHA for one in differences) / len(differences)
    deviation = sqrt(share * (1 - share) / len(differences))
    print(f"{100 * share:.1f} % +- {100 * deviation:.1f} of {len(differences)} pairs below {ALPHA}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

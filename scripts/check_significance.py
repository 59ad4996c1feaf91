"""How often the paired tests call systems different that do not differ; of a test at the level 0.05 it should be 5 %.

    python scripts/check_significance.py --references test.de one.de other.de

Pairs without a difference are made of two systems' translations of the same sentences: sentences are drawn, and chance decides
which of the two outputs of each goes to which system.
"""

import argparse
import sys
from collections.abc import Sequence
from math import sqrt
from pathlib import Path

import numpy as np

from nmt.data.evaluation_set import read_files
from nmt.errors import NmtError
from nmt.metrics.significance import Difference, compare

ALPHA = 0.05


def null_pair(outputs: Sequence[Sequence[str]], reference: Sequence[str], size: int, random: np.random.Generator) -> Difference:
    """Two systems that differ by chance alone, compared in BLEU."""
    drawn, swapped = random.integers(len(reference), size=size), random.integers(2, size=size)
    one, other = ([outputs[swap ^ which][i] for i, swap in zip(drawn, swapped, strict=True)] for which in (0, 1))
    return compare(one, other, [[reference[i] for i in drawn]], ["BLEU"], trials=500, resamples=500)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often tests find a difference where there is none.")
    parser.add_argument("outputs", nargs=2, type=Path, help="translations of two systems, a line each")
    parser.add_argument("--references", type=Path, required=True, help="a line each")
    parser.add_argument("--pairs", type=int, default=400, help="pairs compared (%(default)s)")
    parser.add_argument("--sentences", type=int, default=500, help="sentences of a pair (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        reference, outputs = read_files(options.references, options.outputs)
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    random = np.random.default_rng(1)
    found = [null_pair(outputs, reference, options.sentences, random) for _ in range(options.pairs)]
    for name, values in (
        ("randomisation", [one.p_randomisation for one in found]),
        ("bootstrap", [one.p_bootstrap for one in found]),
    ):
        share = sum(value < ALPHA for value in values) / len(values)
        deviation = sqrt(share * (1 - share) / len(values))
        print(f"{name:<14} {100 * share:5.1f} % +- {100 * deviation:.1f} of {len(values)} pairs below {ALPHA}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

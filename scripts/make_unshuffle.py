"""Write the corpus of `configs/unshuffle.yaml`: numbers in random order, and the same numbers
sorted.

    python scripts/make_unshuffle.py [--output PATH] [--pairs N] [--seed S]

No line contains a number twice, so exactly one permutation sorts it, and the correct attention of a
trained model is known. The same seed always gives the same file.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "data" / "unshuffle" / "unshuffle.tsv"
PAIRS = 6000
SEED = 2015
HEADER = ("shuffled", "sorted")
NUMBERS = range(
    10, 40
)  # two digits each: the split compares letters and digits of sentences without the spaces
LENGTHS = range(3, 9)

Pair = tuple[str, str]


def make_pairs(
    count: int, seed: int, numbers: Sequence[int] = NUMBERS, lengths: Sequence[int] = LENGTHS
) -> list[Pair]:
    """Different sets of numbers, each in random and in ascending order: no source and no target
    occurs twice.
    """
    random = Random(seed)
    pairs: dict[str, str] = {}  # sorted numbers: shuffled numbers
    while len(pairs) < count:
        sample = random.sample(numbers, random.choice(lengths))
        pairs.setdefault(join(sorted(sample)), join(sample))
    return [(shuffled, ordered) for ordered, shuffled in pairs.items()]


def join(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def to_table(pairs: Sequence[Pair]) -> str:
    """Tab-separated, with a header row."""
    return "".join(f"{src}\t{tgt}\n" for src, tgt in [HEADER, *pairs])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the unshuffle corpus.")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="the file to write (%(default)s)"
    )
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help="number of sentence pairs (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the random numbers (%(default)s)"
    )
    options = parser.parse_args(arguments)
    text = to_table(make_pairs(options.pairs, options.seed))
    options.output.write_text(text, encoding="utf-8", newline="\n")
    print(f"{options.output}: {options.pairs} pairs, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()

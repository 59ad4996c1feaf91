"""Fuzzing: damaged and hostile inputs of every kind that nmt reads.

    python scripts/campaign_fuzz.py -o FOLDER [--cases 10000] [--targets vocabulary ...] [--seed 1]
    python scripts/campaign_fuzz.py -o FOLDER --table
    python scripts/campaign_fuzz.py -o FOLDER --coverage 60 [--targets TMX ...]

Each target starts from valid inputs and changes them at random. A case passes if nmt accepts the
input or refuses it with one of its own errors; it fails with any other exception, a crash of the
interpreter, more than 10 seconds of processor time, or more than 2 GB of additional memory. Case
NUMBER of a target depends only on the seed and the number. After an interruption, repeat the
command: it continues. A larger --cases extends a campaign. Failing inputs are in FOLDER/failures;
counts in FOLDER/counts.json.

With --coverage, the changes are guided by the branches that they reach (pip install atheris);
interesting inputs are kept in FOLDER/corpus, and a repeated call starts from them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.files import write_text
from scripts.fuzz.inputs import make_files
from scripts.fuzz.process import Counts, run_target
from scripts.fuzz.targets import TARGETS

HEADER = f"{'target':<24}{'cases':>11}{'accepted':>11}{'refused':>11}{'failed':>8}{'slowest':>10}{'a second':>10}"


def row(name: str, counts: Counts) -> str:
    """A line of the table."""
    numbers = f"{counts.cases:>11,}{counts.accepted:>11,}{counts.refused:>11,}{counts.failed:>8,}"
    return (
        f"{name:<24}{numbers}{counts.slowest:>8.2f} "
        f"s{counts.cases / max(counts.seconds, 1e-9):>10,.0f}"
    )


def table(all_counts: dict[str, Counts]) -> str:
    """The counts of all targets, and their sums."""
    total = Counts()
    for counts in all_counts.values():
        total.cases, total.accepted, total.refused = (
            total.cases + counts.cases,
            total.accepted + counts.accepted,
            total.refused + counts.refused,
        )
        total.failed, total.seconds = total.failed + counts.failed, total.seconds + counts.seconds
        total.slowest = max(total.slowest, counts.slowest)
    return "\n".join(
        [HEADER, *(row(name, counts) for name, counts in all_counts.items()), row("total", total)]
    )


def fuzz_with_coverage(folder: Path, names: Sequence[str], seconds: int) -> int:
    """Print a line for each target; the exit status."""
    try:
        from scripts.fuzz.coverage import run_in_process
    except ModuleNotFoundError as error:
        print(
            f"--coverage needs the package {error.name}; run: pip install {error.name}",
            file=sys.stderr,
        )
        return 2
    make_files(folder / "files")
    path = folder / "coverage.json"
    counts: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
    n_failures = 0
    for name in names:
        cases, kept, failures = run_in_process(folder, name, seconds)
        counts[name] = counts.get(name, 0) + cases
        n_failures += failures
        print(
            (
                f"{name:<24}{counts[name]:>11,} cases, {kept:,} inputs kept, {failures} kinds of "
                "failures"
            ),
            flush=True,
        )
        write_text(path, json.dumps(counts, indent=1))
    return 1 if n_failures else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the campaign")
    parser.add_argument(
        "--cases", type=int, default=10_000, help="of each target, with those of earlier calls"
    )
    parser.add_argument(
        "--targets",
        nargs="+",
        choices=[*TARGETS],
        default=[*TARGETS],
        metavar="NAME",
        help=", ".join(TARGETS),
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--coverage",
        type=int,
        metavar="SECONDS",
        help="guided by coverage, so long for each target",
    )
    parser.add_argument(
        "--table", action="store_true", help="only print the table of the finished cases"
    )
    options = parser.parse_args(arguments)
    folder = options.output.resolve()
    path = folder / "counts.json"
    all_counts = (
        {name: Counts(**counts) for name, counts in json.loads(path.read_text()).items()}
        if path.exists()
        else {}
    )
    if options.coverage is not None:
        return fuzz_with_coverage(folder, options.targets, options.coverage)
    if not options.table:
        make_files(folder / "files")
        for name in options.targets:
            counts = all_counts.setdefault(name, Counts())
            run_target(
                name,
                options.seed,
                options.cases,
                folder,
                counts,
                lambda: write_text(
                    path,
                    json.dumps(
                        {name: asdict(counts) for name, counts in all_counts.items()}, indent=1
                    ),
                ),
            )
    print(table(all_counts))
    return 1 if any(counts.failed for counts in all_counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

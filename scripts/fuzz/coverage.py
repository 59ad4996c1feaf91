"""Coverage-guided fuzzing of one target: inputs that reach new branches are kept and changed
further. Needs atheris.

    python -m scripts.fuzz.coverage FOLDER WORK TARGET SECONDS

Called by `campaign_fuzz.py --coverage`, in a process of its own: libFuzzer ends it.
"""

import hashlib
import logging
import re
import subprocess
import sys
import warnings
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parent.parent.parent
INSTRUMENTED = [
    "nmt",
    "yaml",
    "csv",
    "json",
    "gzip",
    "zipfile",
    "xml",
    "h11",
    "starlette",
    "numpy.lib.format",
]
MAX_BYTES = 20_000  # of an input

with atheris.instrument_imports(include=INSTRUMENTED):
    from scripts.fuzz.process import limit_memory, run_case, save_failure, work_folder
    from scripts.fuzz.targets import TARGETS


def corpus_of(folder: Path, name: str) -> Path:
    """The folder of the inputs that are kept."""
    return folder / "corpus" / re.sub(r"\W+", "-", name)


def fuzz(folder: Path, work: Path, name: str, seconds: int) -> None:
    """Does not return. work: a copy of the valid files."""
    warnings.simplefilter("ignore")
    logging.disable()
    target, corpus = TARGETS[name], corpus_of(folder, name)
    corpus.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=INSTRUMENTED):
        for seed in target.seeds(work):
            (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
            run_case(target, seed, work)  # imports what it needs
    limit_memory()
    seen: set[str] = set()

    def run(content: bytes) -> None:
        outcome = run_case(target, content, work)
        if (
            outcome not in (None, "refused")
            and (kind := outcome.strip().rpartition("\n")[2][:50]) not in seen
        ):
            seen.add(kind)
            save_failure(f"{name} coverage", 0, len(seen), content, outcome, folder)

    options = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_BYTES}",
        "-print_final_stats=1",
        "-rss_limit_mb=0",
        "-verbosity=1",
    ]
    atheris.Setup([sys.argv[0], str(corpus), *options], run)
    atheris.Fuzz()


def run_in_process(folder: Path, name: str, seconds: int) -> tuple[int, int, int]:
    """Fuzz a target. Returns the number of cases, of kept inputs, and of kinds of failures."""
    with work_folder(folder) as work:
        call = [
            sys.executable,
            "-m",
            "scripts.fuzz.coverage",
            str(folder),
            str(work),
            name,
            str(seconds),
        ]
        result = subprocess.run(
            call, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
        )
    match = re.search(r"stat::number_of_executed_units: (\d+)", result.stderr)
    if match is None:
        raise SystemExit(f"{name}: {result.stderr[-2000:]}")
    failures = len(
        [*(folder / "failures").glob(f"{re.sub('[^a-zA-Z]', '-', name)}-coverage-*.txt")]
    )
    return int(match[1]), len([*corpus_of(folder, name).iterdir()]), failures


if __name__ == "__main__":
    fuzz(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))

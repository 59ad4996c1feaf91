"""Compare an exported run with the run itself, token by token, and measure both.

    python scripts/check_export.py [RUN] [--split test] [--sentences 1000] [--beam K]...
        [--threads 1]

It exports the run in float32 and in int8 to a temporary folder, and translates the same sentences
of the split with nmt and with each export, for each beam (default: 1 and 5). It prints sentences
per second from raw text to raw text (without the start of the process), and per second of CPU time,
which other programs do not disturb; BLEU; the number of translations with other tokens than nmt's;
and the size of the exported folder. The exit status is 1 if a float32 translation differs.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.config.schema import Precision
from nmt.data.corpus import read_sentences
from nmt.errors import NmtError
from nmt.evaluation.scores import score
from nmt.extras.export.command import export_run
from nmt.extras.export.translate import Translator
from nmt.run.folder import check_same_data, load_run_config
from nmt.run.load import find_run_and_checkpoint, load_translator

PRECISIONS: tuple[Precision, ...] = ("float32", "int8")


def compare(
    run: Path | None, split: str, n_sentences: int, beams: Sequence[int], threads: int
) -> list[dict[str, Any]]:
    """A row for each beam, precision and translator: nmt or the export."""
    folder, checkpoint = find_run_and_checkpoint(run)
    prepared = load_run_config(folder).prepared_folder
    check_same_data(folder, prepared)
    texts, references = (
        read_sentences(prepared, split, side)[:n_sentences] for side in ("src", "tgt")
    )
    torch.set_num_threads(threads)
    rows: list[dict[str, Any]] = []

    def add(
        name: str,
        beam: int,
        precision: str,
        start: tuple[float, float],
        outputs: list[str],
        **more: Any,
    ) -> None:
        seconds, cpu_seconds = time.perf_counter() - start[0], time.process_time() - start[1]
        (bleu,) = score(outputs, [references], ["bleu"])
        row = {
            "translator": name,
            "beam": beam,
            "precision": precision,
            "sentences": len(texts),
            "bleu": bleu.value,
            **more,
        }
        rows.append(
            {
                **row,
                "sentences_per_second": len(texts) / seconds,
                "sentences_per_cpu_second": len(texts) / cpu_seconds,
            }
        )

    with tempfile.TemporaryDirectory() as temporary:
        for precision in PRECISIONS:
            overrides = [f"decoding.precision={precision}"]
            exported = Path(temporary) / precision
            export_run(folder, checkpoint, exported, overrides)
            size = sum(path.stat().st_size for path in exported.iterdir())
            for beam in beams:
                translator = load_translator(
                    folder, device="cpu", overrides=[*overrides, f"decoding.beam={beam}"]
                )
                start = time.perf_counter(), time.process_time()
                expected = translator.translate(texts)
                add("nmt", beam, precision, start, [translation.text for translation in expected])
                standalone = Translator(exported, beam=beam, threads=threads)
                start = time.perf_counter(), time.process_time()
                outputs = [best[0] for best in standalone.translate_n_best(texts, 1)]
                differing = sum(
                    a.tokens != b.tokens for a, b in zip(expected, outputs, strict=True)
                )
                add(
                    "export",
                    beam,
                    precision,
                    start,
                    [output.text for output in outputs],
                    differing=differing,
                    bytes=size,
                )
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beam", type=int, action="append")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    try:
        rows = compare(
            options.run, options.split, options.sentences, options.beam or [1, 5], options.threads
        )
    except NmtError as error:
        sys.exit(f"check_export.py: {error}")
    print(f"{'translator':10}  precision  beam  sentences/s  per CPU s   BLEU  other tokens     MB")
    for row in rows:
        start = f"{row['translator']:10}  {row['precision']:9}  {row['beam']:4}"
        figures = (
            f"{row['sentences_per_second']:11.1f}  {row['sentences_per_cpu_second']:9.1f}  "
            f"{row['bleu']:5.2f}"
        )
        end = f"{row['differing']:12}  {row['bytes'] / 1e6:5.1f}" if "differing" in row else ""
        print(f"{start}  {figures}  {end}".rstrip())
    if any(row.get("differing") and row["precision"] == "float32" for row in rows):
        sys.exit("check_export.py: the export differs from nmt")


if __name__ == "__main__":
    main()

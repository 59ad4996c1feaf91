"""Damaged and hostile inputs of every kind that nmt reads.

    python scripts/fuzz.py [-o build/fuzz] [--minutes 10] [--kind NAME]... [--seed 1]

Each kind starts from valid inputs, changes them at random, and reads them as the commands do. A
case passes if nmt accepts the input or refuses it in one line. It fails with any other exception, a
crash of the interpreter, more than 10 seconds of processor time, or more than 2 GB of further
memory. At the end comes a table. Failing inputs are in FOLDER/failures; exit status 1 if there is
one. Case NUMBER of a kind depends only on the seed and the number. Linux only.
"""

import argparse
import bz2
import contextlib
import gzip
import io
import logging
import lzma
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow
import pyarrow.parquet
import torch
import zstandard

from nmt.config.load import load_config
from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.config.yaml_text import dump
from nmt.data import corpus, formats, reading
from nmt.errors import NmtError
from nmt.extras.neighbors.model import load_pairs
from nmt.extras.runs import check, inspect
from nmt.run.load import opened
from nmt.run.weights import build_model, load_optimizer, load_weights
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary
from scripts.campaign import CONFIG, ROOT, Campaign, run_well
from scripts.mutate import mutate

SECONDS, EXTRA_BYTES = 10, 2 << 30  # of a case: processor time; of all cases: memory
COLUMNS = ("cases", "accepted", "refused", "failed", "slowest")
HANG_SECONDS = 120  # a case that takes so long, without processor time, hangs
TABLE, YAML = (ROOT / "data/sample/sample.tsv").read_bytes()[:400], CONFIG.encode()
SOURCES = b"data:\n  sources:\n  - {format: jsonl, path: [a.gz, 'b*']}\n  - &a {path: x}\n  - *a\n"
JSON_LINES = b'{"en": "A.", "de": "\\ud83d"}\n{"translation": {"en": "It.", "de": "Es."}}\n'
TMX = b"""<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx><body><tu tuid="1"><tuv xml:lang="en-GB"><seg>Anna <bpt i="1">b</bpt>sees &amp; it.</seg></tuv>
<tuv lang="de"><seg>Anna &#x263A;<![CDATA[<b>]]>.</seg></tuv></tu></body></tmx>\n"""


class Inputs:
    """The run of the campaign, and functions that read a changed file as the commands do."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)  # a forked process has no other threads
        self.folder = Campaign(folder).template
        for words in ("evaluate run --device cpu", "share bundle run -o run.nmt"):
            run_well(words, self.folder)
        self.run, self.case = self.folder / "run", self.folder / "case"
        self.case.mkdir()
        shutil.copy(self.folder / "prepared/train.src.offsets.npy", self.case)
        self.config = load_config(self.run / "config.yaml")
        self.model = build_model(self.run, self.config)
        # Checksums would end a case early.
        (self.run / "checksums.json").unlink()
        paths = sorted(path for path in self.run.rglob("*.json*") if path.name != "checksums.json")
        checksum = re.compile(rb',\s+"checksum": "\w+"')
        self.records = {path: checksum.sub(b"", path.read_bytes()) for path in paths}

    def seeds(self, seeds: str | Sequence[bytes]) -> Sequence[bytes]:
        """Valid inputs: the files of a pattern, or given ones."""
        if seeds == "records":
            return [str(path).encode() + b"\n" + each for path, each in self.records.items()]
        if isinstance(seeds, str):
            return [path.read_bytes() for path in sorted(self.folder.glob(seeds))]
        return seeds

    def pairs(self, path: Path) -> None:
        kind: Any = path.suffix[1:] if path.suffix in (".jsonl", ".parquet", ".tmx") else "tsv"
        columns = {"en": 1, "de": 2} if kind == "tsv" else None
        source, sides = SourceConfig(format=kind, columns=columns), ("en", "de")
        for part in formats.open_source(source, {"": [path]}, sides):
            reading.clean_rows(part, CleaningConfig(), [*part.rows()], part.first_line, sides)

    def override(self, path: Path) -> None:
        load_config(self.config, [path.read_bytes().decode("utf-8", "surrogateescape")])

    def bundle(self, path: Path) -> None:
        with opened(path):
            pass

    def subwords(self, path: Path) -> None:
        tokenizer = load_tokenizer(self.config.tokenizer, "en", "src", path.parent)
        tokenizer.join(tokenizer.split("Anna sieht den König."))

    def weights(self, path: Path) -> None:
        load_weights(path.parent, self.model)

    def optimizer(self, path: Path) -> None:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.0, fused=True)
        load_optimizer(path.parent, self.model, optimizer)
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()  # a state of another shape can be loaded, but not used

    def array(self, path: Path) -> None:
        sequences = corpus.Sequences.load(path.with_suffix(""))
        len(sequences[len(sequences) - 1])

    def shown(self, path: Path) -> None:
        """A record of the run, with its name on a line before it."""
        name, _, content = path.read_bytes().partition(b"\n")
        record = Path(name.decode("utf-8", "replace"))
        if record not in self.records:
            return
        record.write_bytes(content)
        try:
            for _ in check.findings(self.run):
                pass
            with contextlib.redirect_stdout(io.StringIO()):
                inspect.command(self.run)
        finally:
            record.write_bytes(self.records[record])


def zipped() -> bytes:
    """A table in a ZIP archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pairs.tsv", TABLE)
    return stream.getvalue()


def parquet() -> bytes:
    """A Parquet file of a few pairs."""
    pairs = [line.split("\t") for line in TABLE.decode().splitlines()[:5]]
    rows = [{"translation": {"en": src, "de": tgt}} for src, tgt in pairs]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), stream)
    return stream.getvalue()


OVERRIDES = (b"data.source={format: tsv, path: x}", b"training.max_steps=3", b"a.b.c=[1, 'x']")
CHECKPOINT, TENSORS = "run/checkpoints/step-*", ".safetensors"
# The name of the file that a case writes, the function that reads it, and valid inputs.
KINDS: dict[str, tuple[str, Callable[[Inputs, Path], object], str | Sequence[bytes]]] = {
    "configuration": ("x.yaml", lambda _, path: dump(load_config(path)), (YAML, SOURCES)),
    "--set": ("x", Inputs.override, OVERRIDES),
    "table": ("x.tsv", Inputs.pairs, [TABLE]),
    ".gz": ("x.gz", Inputs.pairs, [gzip.compress(TABLE)]),
    ".bz2": ("x.bz2", Inputs.pairs, [bz2.compress(TABLE)]),
    ".xz": ("x.xz", Inputs.pairs, [lzma.compress(TABLE)]),
    ".zst": ("x.zst", Inputs.pairs, [zstandard.compress(TABLE)]),
    ".zip": ("x.zip", Inputs.pairs, [zipped()]),
    "JSON lines": ("x.jsonl", Inputs.pairs, [JSON_LINES]),
    "Parquet": ("x.parquet", Inputs.pairs, [parquet()]),
    "TMX": ("x.tmx", Inputs.pairs, [TMX]),
    "vocabulary": ("x.vocab.txt", lambda _, path: Vocabulary.load(path), "run/*.vocab.txt"),
    "subword model": ("src.spm.model", Inputs.subwords, "run/*.spm.model"),
    "weights": (f"model{TENSORS}", Inputs.weights, f"{CHECKPOINT}/model{TENSORS}"),
    "optimizer": (f"optimizer{TENSORS}", Inputs.optimizer, f"{CHECKPOINT}/optimizer{TENSORS}"),
    "records of a run": ("record", Inputs.shown, "records"),
    "similar pairs": ("x.tsv", lambda _, path: load_pairs(path), "run/neighbors.tsv"),
    "encoded data": ("train.src.npy", Inputs.array, "prepared/train.src.npy"),
    "bundle": ("x.nmt", Inputs.bundle, "run.nmt"),
}


def run_case(read: Callable[[], object]) -> str:
    """Returns "accepted" or "refused", or what is wrong. The timers end the process."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
    try:
        read()
    except NmtError as error:
        several = "\n" in str(error).replace("\n  ", "")
        return f"several lines: {error}" if several else "refused"
    except Exception:  # noqa: BLE001 - this is what the script looks for
        return traceback.format_exc(limit=-6)
    return "accepted"


@dataclass
class Fuzzer:
    """Runs cases in child processes: a crash of the interpreter costs one case."""

    failures: Path
    inputs: Inputs
    seed: int

    def run(self, name: str, seconds: float) -> list[float]:
        """Cases of a kind, for so long. Returns `COLUMNS`."""
        counts: Any = RawArray("d", len(COLUMNS))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (child := os.fork()) == 0:
                try:
                    self._run_cases(name, counts, end)
                finally:
                    os._exit(1)
            if status := os.waitpid(child, 0)[1]:
                self._save(name, int(counts[0]) - 1, f"the process ended with status {status}")
                counts[COLUMNS.index("failed")] += 1
        return [*counts]

    def _case(self, name: str, number: int) -> bytes:
        generator = random.Random(f"{self.seed} {name} {number}")
        return mutate(self.inputs.seeds(KINDS[name][2]), generator)

    def _run_cases(self, name: str, counts: Any, end: float) -> None:
        """Runs in a child process, which it ends."""
        warnings.simplefilter("ignore")
        logging.disable()
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        limit = pages * resource.getpagesize() + EXTRA_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        file, read, _ = KINDS[name]
        path = self.inputs.case / file
        while time.monotonic() < end:
            number = int(counts[0])
            counts[0] += 1
            path.write_bytes(self._case(name, number))
            before = time.process_time()
            result = run_case(partial(read, self.inputs, path))
            counts[4] = max(counts[4], time.process_time() - before)
            if result not in COLUMNS:
                self._save(name, number, result)
                result = "failed"
            counts[COLUMNS.index(result)] += 1
        os._exit(0)

    def _save(self, name: str, number: int, text: str) -> None:
        stem = f"{re.sub('[^A-Za-z]+', '-', name)}-{self.seed}-{number}"
        self.failures.mkdir(parents=True, exist_ok=True)
        (self.failures / f"{stem}.txt").write_text(text, "utf-8", errors="replace")
        (self.failures / f"{stem}.bin").write_bytes(self._case(name, number))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("build/fuzz"), metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=10, help="of all kinds together")
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    failed, seconds = 0.0, 60 * options.minutes / len(options.kind or KINDS)
    with tempfile.TemporaryDirectory(prefix="nmt-fuzz-") as name:
        fuzzer = Fuzzer(options.output.resolve() / "failures", Inputs(Path(name)), options.seed)
        print(f"{'input':<20}" + "".join(f"{column:>10}" for column in COLUMNS))
        for kind in options.kind or KINDS:
            *numbers, slowest = fuzzer.run(kind, seconds)
            columns = "".join(f"{number:>10,.0f}" for number in numbers)
            print(f"{kind:<20}{columns}{slowest:>8.2f} s", flush=True)
            failed += numbers[-1]
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

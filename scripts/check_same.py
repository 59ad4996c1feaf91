"""Record what nmt computes, and check later that a changed nmt computes the same, bit for bit.

    python scripts/check_same.py --record FILE [--tree FOLDER] [--only TEXT] [-o FOLDER]
    python scripts/check_same.py --against FILE [--tree FOLDER] [--only TEXT] [-o FOLDER]

It runs the commands of check_same.yaml, with one thread, on a part of the sample data and on texts
made from check_same_texts.yaml. It reads what they write: hashes of prepared data, weights,
optimizers, translations and ONNX graphs, and the figures of `nmt evaluate`. It imports nothing of
nmt, so it can also run a version whose modules lie elsewhere. Record and compare on the same
machine: other processors round differently.
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PARTS = {"train": (0, 600), "dev": (600, 700), "test": (700, 760)}  # lines of the sample
TEXTS = Path(__file__).with_name("check_same_texts.yaml")
SHRINK = 4  # sizes of models, batches and subword vocabularies are divided by this
WRITTEN = ("*.onnx", "neighbors.tsv", "checkpoints/*/*.safetensors")
CHANGING = ("seconds", "tokens_per_second", "version", "code", "config_sha256")  # ends of keys
TWO_PROCESSES = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


class Trials:
    """Runs the nmt in `tree`, with paths relative to `folder`, and reads what it writes."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree, self.folder, self.made = tree, folder, set[str]()
        self.table = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
        for path in sorted(tree.glob("configs/*.yaml")):
            self.table["data"][path.stem] = self.table["runs"][path.stem] = path.stem
        kinds = ("data", "runs", "translate", "evaluate")
        named = [f"{kind}/{name}" for kind in kinds for name in self.table[kind]]
        self.names = sorted({*named, *self.table["made"]})
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        self.environment = {**os.environ, **one_thread, "PYTHONPATH": str(tree)}
        write_inputs((tree / "data/sample/sample.tsv").read_text("utf-8").splitlines(True), folder)

    def measure(self, name: str) -> dict[str, str]:
        """The entries of a job; if a command fails, its error."""
        try:
            entries = dict(self._measure(*name.split("/")))
        except subprocess.CalledProcessError as error:
            entries = {"error": error.stderr.decode().strip()[-500:]}
            print(f"{name}: {entries['error']}", file=sys.stderr)
        return {f"{name}/{key}": value for key, value in entries.items()}

    def _measure(self, kind: str, name: str) -> Iterator[tuple[str, str]]:
        if kind == "translate":
            options = self.table[kind][name]
            file = "pairs.tsv" if "--score" in options else "data/words/dev.src.txt"
            named = "" if "--file" in options else f"--file {file} "
            yield "stdout", sha256(self.run(f"translate {named}{options}"))
        elif kind == "evaluate":
            yield from flatten(json.loads(self.run(self.table[kind][name])))
        else:
            self.make(f"{kind}/{name}")
            folder = self.folder / kind / name
            if kind == "data":
                yield "content", json.loads((folder / "manifest.json").read_bytes())["content"]
            for path in sorted(path for pattern in WRITTEN for path in folder.glob(pattern)):
                yield path.relative_to(folder).as_posix(), sha256(content_of(path))
            for path in folder.glob("journal.jsonl"):
                events = [[*flatten(json.loads(line))] for line in path.read_bytes().splitlines()]
                yield "journal", sha256(json.dumps(events).encode())

    def make(self, name: str) -> None:
        """Make prepared data, a run or an export, if it is not there yet."""
        if name in self.made or name not in self.names:
            return
        self.made.add(name)
        kind, stem = name.split("/")
        (self.folder / kind).mkdir(exist_ok=True)
        if (command := self.table["made"].get(name)) is not None:
            if command.split()[1] == name:  # it changes a run
                self.make("runs/luong")
                shutil.copytree(self.folder / "runs/luong", self.folder / name)
            self.run(command)
        elif kind == "data":
            config, *settings = self.table[kind][stem].split()
            self.run(f"prepare -q -o {name}", *self.options(config, settings))
        else:
            data, *settings = self.table[kind][stem].split()
            config, *of_data = self.table["data"][data].split()
            for updates in (15, 30):
                first = f"data.prepared=data/{data}", f"training.max_steps={updates}"
                options = self.options(config, [*first, *of_data, *settings])
                self.run(f"train -q -o {name} --device cpu --resume", *options)

    def options(self, config: str, settings: Sequence[str]) -> Iterator[str]:
        """The options that name a configuration, make it small, and change it further."""
        path = self.tree / "configs" / f"{config}.yaml"
        values = yaml.safe_load(path.read_text("utf-8"))
        source = self.table["formats"][values["data"]["source"]["format"]]
        yield from ("-c", str(path))
        for each in (*smaller(values), *source.split(), *self.table["settings"].split(), *settings):
            yield from ("--set", each)

    def run(self, command: str, *options: str) -> bytes:
        """The output of a command. First makes what it names."""
        words = [*command.split(), *options]
        for word in words:
            self.make("/".join(word.rpartition("=")[2].split("/")[:2]))
        launcher = TWO_PROCESSES if "runs/two-processes" in words else ()
        line = [sys.executable, *launcher, "-m", "nmt", *words]
        return subprocess.run(
            line, cwd=self.folder, env=self.environment, capture_output=True, check=True
        ).stdout


def write_inputs(lines: Sequence[str], folder: Path) -> None:
    """Write parts of the sample in the formats that the configurations read."""
    pairs = "".join(lines[: PARTS["test"][1]])
    (folder / "pairs.tsv").write_text(pairs, "utf-8")
    (folder / "table.tsv").write_text(f"shuffled\tsorted\n{pairs}", "utf-8")
    sentences = [line.split("\t")[0] for line in lines[PARTS["dev"][0] : PARTS["test"][1]]]
    write_texts(sentences, pairs.splitlines()[: PARTS["train"][1] : 2], folder)
    for name, (start, end) in PARTS.items():
        columns = zip(*(line.rstrip("\n").split("\t") for line in lines[start:end]), strict=True)
        for language, column in zip(("en", "de"), columns, strict=True):
            text = "".join(f"{sentence}\n" for sentence in column)
            (folder / f"{name}.{language}").write_text(text, "utf-8")
            (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def write_texts(sentences: Sequence[str], pairs: Sequence[str], folder: Path) -> None:
    """Write 200 lines that are more than sentences, a glossary, a memory, and a document of each
    format.
    """
    n, texts = len(sentences), yaml.safe_load(TEXTS.read_text("utf-8"))
    rows = [sentences[i % n : i % n + 3] or sentences[:3] for i in range(200)]
    forms = [*texts["lines"]]
    lines = [forms[i % len(forms)].format(*row, *row, *row) for i, row in enumerate(rows)]
    upper = [line.upper() if i % 9 == 4 else line for i, line in enumerate(lines)]
    (folder / "texts.txt").write_text("".join(f"{line}\n" for line in upper), "utf-8")
    (folder / "terms.tsv").write_text(texts["terms"], "utf-8")
    (folder / "memory.tsv").write_text("\n".join([*pairs, ""]), "utf-8")
    for name, form in texts["documents"].items():
        text = form
        for i in range(8):
            text = text.replace(f"<<{i}>>", sentences[7 * i])
        (folder / name).write_text(text, "utf-8")
    with zipfile.ZipFile(folder / "text.docx", "w") as archive:
        for name, form in texts["docx"].items():
            archive.writestr(zipfile.ZipInfo(name), form.replace("<<0>>", sentences[3]))


def smaller(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The settings that divide all sizes of a configuration."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from smaller(value, f"{prefix}{key}.")
        elif key.endswith("size") and isinstance(value, int):
            yield f"{prefix}{key}={value // SHRINK}"


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Values in JSON by their paths, such as `scores.0.metric`, without what always changes."""
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        value = {str(index): each for index, each in enumerate(value)}
    if isinstance(value, dict):
        for key, each in value.items():
            if not key.endswith(CHANGING):
                yield from flatten(each, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix, json.dumps(value, ensure_ascii=False)


def content_of(path: Path) -> bytes:
    """The bytes of a file. The header of weights is sorted: tied weights make its order random."""
    content = path.read_bytes()
    if path.suffix == ".safetensors":
        end = 8 + int.from_bytes(content[:8], "little")  # the length of the header, the header
        content = json.dumps(json.loads(content[8:end]), sort_keys=True).encode() + content[end:]
    return content


def sha256(content: bytes) -> str:
    """The SHA-256, as in a record."""
    return hashlib.sha256(content).hexdigest()


def job_of(name: str) -> str:
    """The job of an entry: the first two parts of its name."""
    return "/".join(name.split("/")[:2])


def verdict(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What became of an entry. A figure of `nmt evaluate` may go: another command may print it."""
    if name not in before:
        return "DIFFERENT" if name.endswith("/error") else "new"
    if name not in now and name.startswith("evaluate/"):
        return "gone"
    return "equal" if before[name] == now.get(name) else "DIFFERENT"


def main() -> int:
    """The command line. Returns the exit status: 1 if an entry differs or a command failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the entries to FILE")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with those in FILE")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the clone of nmt to run")
    parser.add_argument("--only", default="", metavar="TEXT", help="jobs with TEXT in their names")
    parser.add_argument("-o", type=Path, metavar="FOLDER", help="keep all files in FOLDER")
    options = parser.parse_args()
    before = json.loads(options.against.read_bytes()) if options.against else {}
    folder = Path(tempfile.mkdtemp(prefix="same-", dir=options.o))
    trials = Trials(options.tree.resolve(), folder)
    found: dict[str, str] = {}
    verdicts: dict[str, str] = {}
    for job in sorted({*trials.names, *map(job_of, before)}):
        if options.only in job:
            start = time.monotonic()
            now = trials.measure(job) if job in trials.names else {}
            print(f"{time.monotonic() - start:5.1f} s  {job}", file=sys.stderr, flush=True)
            then = {name: each for name, each in before.items() if job_of(name) == job}
            for name in {**then, **now} if options.against else ():
                verdicts[name] = each = verdict(name, then, now)
                if each != "equal":
                    print(f"{each:10} {name}: {then.get(name)} > {now.get(name)}", flush=True)
                elif not name.startswith("evaluate/"):
                    print(f"{each:10} {name}", flush=True)
            found |= now
    if options.record:
        options.record.write_text(json.dumps(found, indent=1), "utf-8")
    if options.o is None:
        shutil.rmtree(folder)
    print(", ".join(f"{count} {each}" for each, count in Counter(verdicts.values()).most_common()))
    failed = any(name.endswith("/error") for name in found)
    return int(failed or "DIFFERENT" in verdicts.values())


if __name__ == "__main__":
    sys.exit(main())

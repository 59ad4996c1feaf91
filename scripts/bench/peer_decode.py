"""Other toolkits: trains their models as in `peers.py`, then translates with their command lines.

To add a toolkit: write a function for its training settings and one for its translation command,
and add a row to `TRANSLATORS`.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from nmt.config.schema import Config
from nmt.data.corpus import Corpus
from nmt.data.manifest import load_manifest
from nmt.lines import write_lines
from scripts.bench.memory import peak_memory
from scripts.bench.peers import (
    PEERS,
    SPACE_MARK,
    PeerError,
    Values,
    read_tokens,
    to_line,
    write_data,
)

POLL_SECONDS = 0.05  # between two readings of a process's memory


@dataclass(frozen=True)
class Job:
    """Translate the file `source` into `output`, `batch` sentences at a time, with the model
    trained for `updates`.
    """

    folder: Path
    source: Path
    output: Path
    beam: int
    batch: int
    updates: int


@dataclass(frozen=True)
class PeerTranslator:
    """How a toolkit translates.

    Attributes:
        train: changes its training settings, so that it stops after a number of updates and saves
            its model.
        command: its translation command, without the interpreter.
        pipes: whether the command reads standard input and writes standard output.
    """

    train: Callable[[Values, int], Values]
    command: Callable[[Job, Values], list[str]]
    pipes: bool


def _opennmt_training(values: Values, updates: int) -> Values:
    return {**values, "train_steps": updates, "save_checkpoint_steps": updates}


def _opennmt_command(job: Job, values: Values) -> list[str]:
    model = f"{values['save_model']}_step_{job.updates}.pt"
    words = [
        "-m",
        "onmt.bin.translate",
        "-model",
        model,
        "-src",
        job.source,
        "-output",
        job.output,
        "-beam_size",
        job.beam,
    ]
    return [
        *map(str, words),
        "-batch_size",
        str(job.batch),
        "-batch_type",
        "sents",
        "-max_length_ratio",
        "2",
    ]


def _joeynmt_training(values: Values, updates: int) -> Values:
    training = {**values["training"], "updates": updates, "validation_freq": updates}
    return {**values, "training": training}


def _joeynmt_command(job: Job, values: Values) -> list[str]:
    testing = {
        "beam_size": job.beam,
        "batch_size": job.batch,
        "batch_type": "sentence",
        "beam_alpha": 1.0,
        "eval_metrics": ["bleu"],
    }
    file = job.folder / "translate.yaml"
    file.write_text(yaml.safe_dump({**values, "testing": testing}), encoding="utf-8")
    return ["-m", "joeynmt", "translate", str(file)]


TRANSLATORS = {
    "joeynmt": PeerTranslator(_joeynmt_training, _joeynmt_command, pipes=True),
    "opennmt": PeerTranslator(_opennmt_training, _opennmt_command, pipes=False),
}


@dataclass
class PeerModel:
    """A toolkit with its trained model.

    Attributes:
        folder: for its data and model; an existing model is used again. updates: of its training.
    """

    name: str
    python: Path
    config: Config
    folder: Path
    updates: int
    environment: Mapping[str, str]

    def __post_init__(self) -> None:
        self.values = TRANSLATORS[self.name].train(
            PEERS[self.name].settings(self.config, self.folder, self.config.seed), self.updates
        )

    def prepare(self, split: str, sentences: int) -> None:
        """Write its data, and train its model unless the folder contains the same one. Raises:
        PeerError: it failed.
        """
        sources, tokens = (
            Corpus.load(self.config.prepared_folder, split).src,
            read_tokens(self.config.prepared_folder, "src"),
        )
        lines = [to_line(sources[index], tokens) for index in range(min(sentences, len(sources)))]
        self.folder.mkdir(parents=True, exist_ok=True)
        write_lines(self.folder / "test.src", lines)
        write_lines(self.folder / "one.src", lines[:1])
        settings, record = yaml.safe_dump(self.values), self.folder / "trained.yaml"
        contents = f"{settings}# {load_manifest(self.config.prepared_folder)['content']}\n"
        if record.exists() and record.read_text(encoding="utf-8") == contents:
            return
        print(f"{self.name}: training for {self.updates} updates", file=sys.stderr)
        write_data(self.config, self.folder)
        file = self.folder / f"{self.name}.yaml"
        file.write_text(settings, encoding="utf-8")
        self._run([*PEERS[self.name].command, str(file)])
        record.write_text(contents, encoding="utf-8")

    def translate(
        self, source: str, beam: int, batch: int
    ) -> tuple[float, int | None, list[list[str]]]:
        """Translate `<source>.src`: the seconds with the start of the process, its peak memory, and
        the tokens of each line.

        Raises:
            PeerError: it failed, or wrote another number of lines than the source has.
        """
        job = Job(
            self.folder,
            self.folder / f"{source}.src",
            self.folder / f"{source}.out",
            beam,
            batch,
            self.updates,
        )
        translator = TRANSLATORS[self.name]
        words = translator.command(job, self.values)
        start = time.perf_counter()
        memory = self._run(words, (job.source, job.output) if translator.pipes else None)
        seconds = time.perf_counter() - start
        outputs = job.output.read_text(encoding="utf-8").splitlines()
        expected = len(job.source.read_text(encoding="utf-8").splitlines())
        if len(outputs) != expected:
            raise PeerError(f"{PEERS[self.name].title} wrote {len(outputs)} lines for {expected}")
        return (
            seconds,
            memory,
            [[token.replace(SPACE_MARK, " ") for token in line.split()] for line in outputs],
        )

    def _run(self, words: Sequence[str], piped: tuple[Path, Path] | None = None) -> int | None:
        """Run a command: its peak memory. `piped`: files for standard input and output. Raises:
        PeerError: it failed.
        """
        log, memory = self.folder / "log.txt", None
        source, output = piped or (Path(os.devnull), log)
        for file in (output, log):
            file.write_bytes(b"")
        with source.open("rb") as stdin, output.open("ab") as stdout, log.open("ab") as messages:
            # The checkpoints of OpenNMT-py contain more than weights; torch reads them only if it
            # is told that they are trusted.
            environment = {**self.environment, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
            process = subprocess.Popen(
                [self.python, *words],
                stdin=stdin,
                stdout=stdout,
                stderr=messages,
                env=environment,
                cwd=self.folder,
            )
            while process.poll() is None:
                memory = peak_memory(process.pid) or memory
                time.sleep(POLL_SECONDS)
        if process.returncode:
            last = re.sub(
                r"\s+",
                " ",
                "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]),
            )
            raise PeerError(
                f"{PEERS[self.name].title} failed with exit status {process.returncode}: {last}"
            )
        return memory

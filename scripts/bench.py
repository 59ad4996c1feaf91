"""Measure the speed of training and of translation, side by side with other toolkits.

    python scripts/bench.py train [CONFIG] [--seconds 20] [--rounds 3] [--against SYSTEM]...
    python scripts/bench.py decode [RUN] [--sentences 500] [--beam 5] [--against SYSTEM]...

`train` needs prepared data (default: that of scripts/peers/model-r.yaml) and prints target tokens
per second, with <eos> and without padding. `decode` needs a trained run and prints sentences per
second, from text to text, and BLEU: for exact search, for 8-bit integers, and with a shortlist if
`nmt lexicon` has written the lexicon of the run.

SYSTEM is `joeynmt` or `opennmt`; give the Python of its environment, scripts/peer_toolkits.py says
how to make one, with --peer-python SYSTEM=PYTHON. All see the same tokens and vocabularies. They
run in turn, round after round, each in a new process, so that other load on the machine affects all
alike. Figures are medians over the rounds; ratios are computed within a round. Memory is the peak.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.config.load import load_config
from nmt.config.schema import Config
from nmt.data.corpus import read_sentences
from nmt.errors import NmtError
from nmt.evaluation.scores import score
from nmt.lines import write_lines
from nmt.run.folder import find_run, load_run_config, load_tokenizers
from scripts.peer_toolkits import (
    ENDLESS,
    PEERS,
    SPACE_MARK,
    PeerError,
    check_installed,
    unsupported_keys,
    write_data,
    write_settings,
)

ROOT = Path(__file__).resolve().parent.parent
WARM_UP_LINES = 2  # of nmt's journal
START_UP_SECONDS = 300  # before another toolkit's first report

Figures = dict[str, float]
System = Callable[[int], Figures]  # one round, by its number


def environment(threads: int) -> dict[str, str]:
    """The environment of a measured process."""
    return os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # checkpoints of OpenNMT-py hold more than weights
    }


def run(words: Sequence[object], threads: int, **files: Any) -> tuple[float, float, str]:
    """Run a command: its seconds, its peak memory in MB, and what it prints.

    Raises:
        PeerError: it failed.
    """
    with tempfile.TemporaryFile() as printed:
        files = {"stdout": printed, "stderr": printed, **files}
        start = time.perf_counter()
        process = subprocess.Popen([*map(str, words)], env=environment(threads), **files)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    if process.returncode:
        raise PeerError(f"failed: {' '.join(text.strip().splitlines()[-3:])}")
    return seconds, usage.ru_maxrss / 1e3, text


def nmt_words(command: str, *words: object, changes: Sequence[str]) -> list[object]:
    """A command line of nmt."""
    settings = [word for change in changes for word in ("--set", change)]
    return [sys.executable, "-m", "nmt", command, *words, *settings]


def train_nmt(number: int, config: Path, options: Any, folder: Path) -> Figures:
    """`nmt train` without validations: the speeds in its journal, but for the first ones."""
    keys: dict[str, object] = {
        "seed": number + 1,
        "training.max_minutes": options.seconds / 60,
        "training.epochs": ENDLESS,
        "training.max_steps": "null",
        "training.validate_every": ENDLESS,
        "training.log_every": 10,
        "training.validation_pairs": 1,
        "training.final_pairs": 0,
        "training.threads": options.threads,
    }
    place = folder / f"nmt-{number}"
    changes = [*options.set, *(f"{key}={value}" for key, value in keys.items())]
    words = nmt_words("train", "-q", "-c", config, "-o", place, changes=changes)
    _, memory, _ = run(words, options.threads)
    lines = map(json.loads, (place / "journal.jsonl").read_text(encoding="utf-8").splitlines())
    speeds = [line["tokens_per_second"] for line in lines if line["event"] == "train"]
    if len(speeds) <= WARM_UP_LINES:
        raise PeerError("too few updates; raise --seconds")
    return {"speed": statistics.harmonic_mean(speeds[WARM_UP_LINES:]), "memory": memory}


def train_peer(number: int, name: str, config: Config, options: Any, folder: Path) -> Figures:
    """The speeds that another toolkit prints, weighted by their times, for some seconds."""
    peer, place = PEERS[name], folder / name
    write_settings(name, config, place, {"seed": number + 1, "beam": 1, "updates": ENDLESS})
    words = [python_of(name, options), *peer.train.format(folder=place).split()]
    process = subprocess.Popen(
        [*map(str, words)],
        env=environment(options.threads),
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    watchdog = threading.Timer(START_UP_SECONDS + 10 * options.seconds, process.kill)
    watchdog.start()
    times, n_tokens = [], 0.0
    try:
        for line in process.stdout or ():
            if (found := peer.speed.search(line)) is None:
                continue
            times.append(time.perf_counter())
            if len(times) > peer.warm_up:
                n_tokens += float(found[1]) * (times[-1] - times[-2])
                seconds = times[-1] - times[peer.warm_up - 1]
                if seconds >= options.seconds:
                    return {"speed": n_tokens / seconds, "memory": peak_memory(process.pid)}
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()
    raise PeerError("ended before it had reported enough speeds")


def peak_memory(process: int) -> float:
    """Of a running process, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", status)
    return int(kilobytes) / 1e3


def decode_nmt(
    number: int, run_folder: Path, texts: "Texts", changes: Sequence[str], options: Any
) -> Figures:
    """`nmt translate` of a file; the time for one sentence stands for the start of the process."""
    output = texts.folder / "nmt.out"
    keys = [f"decoding.beam={options.beam}", *options.set, *changes]
    given = ["--run", run_folder, "--device", "cpu", "-o", output, "--file"]
    one = nmt_words("translate", *given, texts.folder / "one.txt", changes=keys)
    start = run(one, options.threads)[0]
    whole = nmt_words("translate", *given, texts.folder / "test.txt", changes=keys)
    seconds, memory, _ = run(whole, options.threads)
    del number  # all rounds are the same
    return texts.figures(output.read_text(encoding="utf-8").splitlines(), seconds - start, memory)


def decode_peer(
    number: int, name: str, config: Config, run_folder: Path, texts: "Texts", options: Any
) -> Figures:
    """The same with another toolkit, on the same tokens."""
    peer, place = PEERS[name], texts.folder / name
    values = {"beam": options.beam, "updates": options.peer_updates}
    if number == 0:
        write_data(config, place, options.split, options.sentences)
        write_settings(name, config, place, {"seed": 1, **values})
        words = [python_of(name, options), *peer.train.format(folder=place).split()]
        run(words, options.threads, cwd=place)  # trains; this is not measured
    times: dict[str, float] = {}
    for source in ("one", "test"):
        command = peer.translate.format(folder=place, source=source, **values).split()
        with (place / f"{source}.src").open("rb") as stdin, ExitStack() as stack:
            files: dict[str, Any] = {"stdin": stdin, "cwd": place}
            if peer.pipes:
                files["stdout"] = stack.enter_context((place / f"{source}.out").open("wb"))
            words = [python_of(name, options), *command]
            times[source], memory, _ = run(words, options.threads, **files)
    _, tokenizer = load_tokenizers(run_folder, config)
    outputs = [
        tokenizer.join([token.replace(SPACE_MARK, " ") for token in line.split()])
        for line in (place / "test.out").read_text(encoding="utf-8").splitlines()
    ]
    return texts.figures(outputs, times["test"] - times["one"], memory)


@dataclass(frozen=True)
class Texts:
    """The sentences to translate, in files of `folder`, and their references."""

    folder: Path
    references: Sequence[str]
    lowercase: bool

    def figures(self, outputs: Sequence[str], seconds: float, memory: float) -> Figures:
        """Raises: PeerError: the translation took no longer than the start, or lacks lines."""
        if seconds <= 0 or len(outputs) != len(self.references):
            raise PeerError("translated too few sentences to measure; raise --sentences")
        (bleu,) = score(outputs, [self.references], ["BLEU"], lowercase=self.lowercase)
        return {"speed": len(outputs) / seconds, "memory": memory, "BLEU": bleu.value}


def python_of(name: str, options: Any) -> Path:
    """The interpreter of a toolkit."""
    return Path(dict(options.peer_python).get(name, sys.executable)).expanduser().absolute()


def train_systems(options: Any, folder: Path) -> dict[str, System]:
    """The systems to measure, nmt first."""
    path = options.what or ROOT / "scripts/peers/model-r.yaml"
    config = load_config(path, options.set)
    systems: dict[str, System] = {
        "nmt": partial(train_nmt, config=path, options=options, folder=folder)
    }
    for name in check_systems(options, config):
        write_data(config, folder / name)
        systems[name] = partial(
            train_peer, name=name, config=config, options=options, folder=folder
        )
    return systems


def decode_systems(options: Any, folder: Path) -> dict[str, System]:
    """The systems to measure, nmt's exact search first."""
    run_folder = find_run(options.what)
    config = load_run_config(run_folder)
    sources, references = (
        read_sentences(config.prepared_folder, options.split, side)[: options.sentences]
        for side in ("src", "tgt")
    )
    write_lines(folder / "test.txt", sources)
    write_lines(folder / "one.txt", sources[:1])
    texts = Texts(folder, references, config.tokenizer.lowercase)
    int8, short = "decoding.precision=int8", "decoding.shortlist=50"
    variants: dict[str, list[str]] = {"nmt": [], "nmt int8": [int8]}
    if (run_folder / "lexicon.tsv").exists():
        variants |= {"nmt shortlist": [short], "nmt int8 shortlist": [int8, short]}
    shared: dict[str, Any] = {"run_folder": run_folder, "texts": texts, "options": options}
    systems: dict[str, System] = {
        name: partial(decode_nmt, changes=changes, **shared) for name, changes in variants.items()
    }
    for name in check_systems(options, config):
        systems[name] = partial(decode_peer, name=name, config=config, **shared)
    return systems


def check_systems(options: Any, config: Config) -> list[str]:
    """The other systems to measure. Raises: PeerError: one cannot be."""
    if options.against and (keys := unsupported_keys(config.model)):
        raise PeerError(f"the other systems do not support this model: {', '.join(keys)}")
    for name in options.against:
        check_installed(name, python_of(name, options))
    return list(dict.fromkeys(options.against))


def measure(systems: Mapping[str, System], rounds: int) -> dict[str, list[Figures]]:
    """All systems in turn. Raises: PeerError: one failed."""
    results: dict[str, list[Figures]] = {name: [] for name in systems}
    for number in range(rounds):
        for name, system in systems.items():
            figures = system(number)
            results[name].append(figures)
            print(f"round {number + 1}: {name} {figures['speed']:,.1f}", file=sys.stderr)
    return results


def to_table(results: Mapping[str, Sequence[Figures]], unit: str) -> str:
    """The medians, and how many times as fast the first system is, as Markdown."""
    first = next(iter(results.values()))
    rows = [f"| | {unit} | first is | memory | BLEU |", "|---|---|---|---|---|"]
    for name, figures in results.items():
        speeds = [each["speed"] for each in figures]
        ratios = [a["speed"] / b for a, b in zip(first, speeds, strict=True)]
        memory = statistics.median(each["memory"] for each in figures)
        bleu = f"{figures[0]['BLEU']:.1f}" if "BLEU" in figures[0] else ""
        spread = f"{statistics.median(speeds):,.1f} [{min(speeds):,.1f}, {max(speeds):,.1f}]"
        ratio = f"{statistics.median(ratios):.2f} x"
        rows.append(f"| {name} | {spread} | {ratio} | {memory:,.0f} MB | {bleu} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the speed of nmt and of other toolkits.")
    parser.add_argument("task", choices=("train", "decode"))
    parser.add_argument("what", nargs="?", type=Path, metavar="CONFIG|RUN")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seconds", type=float, default=20, help="of a round of training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=500, help="to translate")
    parser.add_argument("--split", choices=("dev", "test"), default="test")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--against", action="append", default=[], choices=[*PEERS])
    parser.add_argument("--peer-updates", type=int, default=300, help="training of a peer")
    parser.add_argument(
        "--peer-python",
        action="append",
        default=[],
        type=lambda text: tuple(text.split("=", 1)),
        metavar="SYSTEM=PYTHON",
    )
    options = parser.parse_args(arguments)
    unit = "target tokens/s" if options.task == "train" else "sentences/s"
    build = train_systems if options.task == "train" else decode_systems
    try:
        with tempfile.TemporaryDirectory(prefix="nmt-bench-") as folder:
            print(to_table(measure(build(options, Path(folder)), options.rounds), unit))
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

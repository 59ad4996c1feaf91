"""Measure the speed of training and of translation, side by side with other toolkits.

    python scripts/bench.py train [CONFIG] [--precision float32]... [--against SYSTEM]...
    python scripts/bench.py decode [RUN] [--beam 5]... [--transformer FOLDER] [--before CHECKOUT]
    python scripts/bench.py start [RUN]
    python scripts/bench.py transformer [RUN] --transformer FOLDER --minutes 41

`train` needs prepared data (default: that of scripts/peers/model-r.yaml) and prints target tokens
per second, with <eos> and without padding, for each precision of nmt. SYSTEM is `joeynmt` or
`opennmt`. All see the same tokens and vocabularies.

`decode` needs a trained run and prints sentences per second and BLEU: for exact search, for 8-bit
integers, with similar pairs if `nmt neighbors` has written them into the run, and for a Transformer
in CTranslate2. The time is that from raw text to raw text, without loading; each distinct sentence
is translated once. `transformer` trains the Transformer of FOLDER with OpenNMT-py, on the data of
the run; no other task trains it.

`start` prints the seconds that whole commands take, from their start to their end.

scripts/peer_toolkits.py says how to install the others; --peer-python SYSTEM=PYTHON names the
Python of their environments. All run in turn, round after round, each in a new process, so that
other load on the machine affects all alike. Figures are medians over the rounds; ratios are
computed within a round. Memory is the peak.
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
from nmt.files import write_text
from nmt.run.checkpoint import Checkpoints, read_progress
from nmt.run.folder import find_run, load_run_config
from scripts.peer_toolkits import (
    ENDLESS,
    PEERS,
    PeerError,
    check_installed,
    unsupported_keys,
    write_data,
    write_settings,
)

ROOT = Path(__file__).resolve().parent.parent
WARM_UP_LINES = 2  # of nmt's journal
START_UP_SECONDS = 300  # before another toolkit's first report
LENGTHS = (5, 7), (11, 13), (18, 24)  # words of the sentences that are also measured alone
ONE_BY_ONE = 100  # sentences that are also measured in a call each
SENTENCE = "Where did you learn to speak German so well?"

Figures = dict[str, float]
System = Callable[[int], Figures]  # one round, by its number


def environment(threads: int, checkout: Path = ROOT) -> dict[str, str]:
    """The environment of a measured process, which uses the nmt of a checkout."""
    return os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")]),
        "PYTHONUNBUFFERED": "1",
    }


def run(words: Sequence[object], threads: int, checkout: Path = ROOT) -> Figures:
    """Run a command: its seconds, and its peak memory in MB.

    Raises:
        PeerError: it failed.
    """
    with tempfile.TemporaryFile() as printed:
        start = time.perf_counter()
        process = subprocess.Popen(
            [*map(str, words)],
            env=environment(threads, checkout),
            stdout=printed,
            stderr=printed,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    if process.returncode:
        raise PeerError(f"failed: {' '.join(text.strip().splitlines()[-3:])}")
    return {"seconds": seconds, "memory (MB)": usage.ru_maxrss / 1e3}


def nmt_words(*words: object, changes: Sequence[str] = ()) -> list[object]:
    """A command line of nmt."""
    settings = [word for change in changes for word in ("--set", change)]
    return [sys.executable, "-m", "nmt", *words, *settings]


def train_nmt(number: int, precision: str, config: Path, options: Any, folder: Path) -> Figures:
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
        "training.precision": precision,
    }
    place = folder / f"nmt-{precision}-{number}"
    changes = [*options.set, *(f"{key}={value}" for key, value in keys.items())]
    words = nmt_words("train", "-q", "-c", config, "-o", place, changes=changes)
    memory = run(words, options.threads)["memory (MB)"]
    lines = map(json.loads, (place / "journal.jsonl").read_text(encoding="utf-8").splitlines())
    speeds = [line["tokens_per_second"] for line in lines if line["event"] == "train"]
    if len(speeds) <= WARM_UP_LINES:
        raise PeerError("too few updates; raise --seconds")
    mean = statistics.harmonic_mean(speeds[WARM_UP_LINES:])
    return {"target tokens/s": mean, "memory (MB)": memory}


def train_peer(number: int, name: str, config: Config, options: Any, folder: Path) -> Figures:
    """The speeds that another toolkit prints, weighted by their times, for some seconds."""
    peer, place = PEERS[name], folder / name
    write_settings(name, config, place, seed=number + 1)
    process = start_training(name, place, options)
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
                    memory = peak_memory(process.pid)
                    return {"target tokens/s": n_tokens / seconds, "memory (MB)": memory}
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()
    raise PeerError("ended before it had reported enough speeds")


def start_training(name: str, place: Path, options: Any) -> subprocess.Popen[str]:
    """A process of another toolkit, in the folder with its data and settings."""
    return subprocess.Popen(
        [python_of(name, options), *PEERS[name].train.split()],
        env=environment(options.threads),
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )


def peak_memory(process: int) -> float:
    """Of a running process, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", status)
    return int(kilobytes) / 1e3


@dataclass(frozen=True)
class Texts:
    """The sentences to translate and their references.

    Attributes:
        groups: what is measured: for each name, the sentences of each call, no sentence twice.
    """

    sources: Sequence[str]
    references: Sequence[str]
    groups: Mapping[str, Sequence[Sequence[str]]]
    lowercase: bool


def translate(
    number: int,
    transformer: Path | None,
    settings: Sequence[str],
    run_folder: Path,
    texts: Texts,
    options: Any,
    folder: Path,
    checkout: Path = ROOT,
) -> Figures:
    """A process of scripts/timed_translation.py: sentences per second of each group, and BLEU."""
    del number  # all rounds are the same
    job = {
        "run": str(run_folder),
        "transformer": transformer and str(transformer / "ctranslate2"),
        "settings": settings,
        "threads": options.threads,
        "groups": texts.groups,
    }
    given, result = folder / "job.json", folder / "result.json"
    write_text(given, json.dumps(job))
    python = python_of("ctranslate2", options) if transformer else sys.executable
    words = [python, ROOT / "scripts/timed_translation.py", given, result]
    memory = run(words, options.threads, checkout)["memory (MB)"]
    seconds, outputs = json.loads(result.read_text(encoding="utf-8"))
    speeds = {name: sum(map(len, calls)) / seconds[name] for name, calls in texts.groups.items()}
    translations = dict(zip(texts.groups["all"][0], outputs, strict=True))
    (bleu,) = score(
        [translations[source] for source in texts.sources],
        [texts.references],
        ["BLEU"],
        lowercase=texts.lowercase,
    )
    return {**speeds, "BLEU": bleu.value, "memory (MB)": memory}


def python_of(name: str, options: Any) -> Path:
    """The interpreter of a toolkit."""
    return Path(dict(options.peer_python).get(name, sys.executable)).expanduser().absolute()


def train(options: Any, folder: Path) -> None:
    """Print the table of `train`."""
    path = options.what or ROOT / "scripts/peers/model-r.yaml"
    config = load_config(path, options.set)
    shared: dict[str, Any] = {"options": options, "folder": folder}
    systems: dict[str, System] = {
        f"nmt {precision}": partial(train_nmt, precision=precision, config=path, **shared)
        for precision in options.precision or ("float32",)
    }
    baselines = [*systems]
    if options.against and (keys := unsupported_keys(config.model)):
        raise PeerError(f"the other systems do not support this model: {', '.join(keys)}")
    for name in options.against:
        check_installed(name, python_of(name, options))
        write_data(config, folder / name)
        systems[name] = partial(train_peer, name=name, config=config, **shared)
    print(to_table(measure(systems, options.rounds), baselines))


def read_texts(config: Config, options: Any) -> Texts:
    sources, references = (
        read_sentences(config.prepared_folder, options.split, side)[: options.sentences]
        for side in ("src", "tgt")
    )
    distinct = [*dict.fromkeys(sources)]
    groups = {"all": [distinct]}
    for low, high in LENGTHS:
        part = [text for text in distinct if low <= len(text.split()) <= high]
        groups[f"{low}-{high} words"] = [part]
    groups["one by one"] = [[text] for text in distinct[:ONE_BY_ONE]]
    return Texts(sources, references, groups, config.tokenizer.lowercase)


def decode(options: Any, folder: Path) -> None:
    """Print how the models were trained, and the tables of `decode`, one for each beam."""
    run_folder, transformer = find_run(options.what), options.transformer
    texts = read_texts(load_run_config(run_folder), options)
    if last := Checkpoints(run_folder).find("last"):  # of a shared run, there is none
        progress = read_progress(last)
        print(f"nmt: {progress.step:,} updates in {progress.seconds / 60:.1f} minutes.")
    exact, int8 = "decoding.precision=float32", "decoding.precision=int8"
    variants: dict[str, tuple[Path | None, list[str]]] = {
        "nmt": (None, [exact]),
        "nmt int8": (None, [int8]),
    }
    if (run_folder / "neighbors.tsv").exists():
        for pairs in (16, 64):
            key = f"decoding.neighbors.pairs={pairs}"
            variants[f"nmt {pairs} similar pairs"] = None, [key]
    if transformer is not None:
        check_installed("ctranslate2", python_of("ctranslate2", options))
        if not (about := transformer / "training.txt").exists():
            raise PeerError(f"{about} is missing; the task `transformer` trains one and writes it")
        print(f"Transformer: {about.read_text(encoding='utf-8').strip()}.")
        variants["Transformer"] = transformer, [exact]
        variants["Transformer int8"] = transformer, [int8]
    shared: dict[str, Any] = {
        "run_folder": run_folder,
        "texts": texts,
        "options": options,
        "folder": folder,
    }
    for beam in options.beam or (1, 5):
        search = [f"decoding.beam={beam}", *options.set]
        systems: dict[str, System] = {
            name: partial(translate, transformer=model, settings=[*search, *keys], **shared)
            for name, (model, keys) in variants.items()
        }
        if options.before:
            for name in ("nmt", "nmt int8"):
                model, keys = variants[name]
                systems[f"{name} before"] = partial(
                    translate,
                    transformer=model,
                    settings=[*search, *keys],
                    checkout=options.before,
                    **shared,
                )
        print(f"\nSentences per second, beam {beam}:\n")
        print(to_table(measure(systems, options.rounds), ["nmt", "nmt int8"]), flush=True)


def train_transformer(options: Any, folder: Path) -> None:
    """Train one for some minutes, convert it for CTranslate2, and write down how it was trained."""
    del folder  # it stays
    place = options.transformer.absolute()
    config = load_run_config(find_run(options.what))
    for name in ("opennmt", "ctranslate2"):
        check_installed(name, python_of(name, options))
    write_data(config, place, None)
    write_settings("transformer", config, place, seed=1)
    step, seconds = 0, 0
    with (
        start_training("opennmt", place, options) as process,
        (place / "train.log").open("w", encoding="utf-8", buffering=1) as log,
    ):
        for line in process.stdout or ():
            log.write(line)
            if found := re.search(r"Step (\d+)/.*?(\d+) sec", line):
                if int(found[2]) > 60 * options.minutes:
                    process.kill()
                    break  # the checkpoint of this report may be incomplete
                step, seconds = int(found[1]), int(found[2])
    if not step:
        raise PeerError(f"no report within {options.minutes} minutes; see {place / 'train.log'}")
    words = "-m ctranslate2.converters.opennmt_py --unsafe_deserialization --force --model_path"
    paths = place / f"model_step_{step}.pt", "--output_dir", place / "ctranslate2"
    run([python_of("ctranslate2", options), *words.split(), *paths], options.threads)
    about = f"{step:,} updates in {seconds / 60:.1f} minutes of {options.threads} thread(s)"
    write_text(place / "training.txt", f"{about}\n")
    print(f"{place}: {about}")


def start_nmt(number: int, words: Sequence[object], options: Any) -> Figures:
    """A whole command."""
    del number
    return run(words, options.threads)


def start(options: Any, folder: Path) -> None:
    """Print the table of `start`."""
    del folder
    given = "--run", find_run(options.what), "--device", "cpu", SENTENCE
    commands = {
        "nmt translate SENTENCE": nmt_words("translate", *given, changes=options.set),
        "nmt translate --help": nmt_words("translate", "--help"),
    }
    systems = {
        name: partial(start_nmt, words=words, options=options) for name, words in commands.items()
    }
    print(to_table(measure(systems, options.rounds), []))


def measure(systems: Mapping[str, System], rounds: int) -> dict[str, list[Figures]]:
    """All systems in turn. Raises: PeerError: one failed."""
    results: dict[str, list[Figures]] = {name: [] for name in systems}
    for number in range(rounds):
        for name, system in systems.items():
            figures = system(number)
            results[name].append(figures)
            shown = ", ".join(f"{key} {to_text(value)}" for key, value in figures.items())
            print(f"round {number + 1}: {name}: {shown}", file=sys.stderr)
    return results


def to_text(value: float) -> str:
    """With three digits, or all that are before the point."""
    return f"{value:,.{max(0, 3 - len(str(int(value))))}f}"


def to_table(results: Mapping[str, Sequence[Figures]], baselines: Sequence[str]) -> str:
    """The medians as Markdown. The first figure also has its range, and how many times as high it
    is for each of the baselines.
    """
    main_key, *others = next(iter(results.values()))[0]
    titles = ["", main_key, *(f"{name} is" for name in baselines), *others]
    rows = [titles, ["---"] * len(titles)]
    for name, figures in results.items():
        values = [each[main_key] for each in figures]
        middle, low, high = (to_text(f(values)) for f in (statistics.median, min, max))
        ratios = (
            statistics.median(a[main_key] / b for a, b in zip(results[base], values, strict=True))
            for base in baselines
        )
        medians = (statistics.median(each[key] for each in figures) for key in others)
        rows.append(
            [
                name,
                f"{middle} [{low}, {high}]",
                *(f"{ratio:.2f} x" for ratio in ratios),
                *map(to_text, medians),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


TASKS = {"train": train, "decode": decode, "start": start, "transformer": train_transformer}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the speed of nmt and of other toolkits.")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("what", nargs="?", type=Path, metavar="CONFIG|RUN")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=20, help="train: of a round")
    parser.add_argument("--precision", action="append", help="train: of nmt; default: float32")
    parser.add_argument("--against", action="append", default=[], choices=[*PEERS], help="train")
    parser.add_argument("--sentences", type=int, help="decode: the first ones; default: all")
    parser.add_argument("--split", choices=("dev", "test"), default="test", help="decode")
    parser.add_argument("--beam", type=int, action="append", help="decode; default: 1 and 5")
    parser.add_argument("--transformer", type=Path, metavar="FOLDER", help="decode, transformer")
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="decode: an nmt of another commit"
    )
    parser.add_argument("--minutes", type=float, default=41, help="transformer: of training")
    parser.add_argument(
        "--peer-python",
        action="append",
        default=[],
        type=lambda text: tuple(text.split("=", 1)),
        metavar="SYSTEM=PYTHON",
    )
    options = parser.parse_args(arguments)
    if options.task == "transformer" and options.transformer is None:
        parser.error("transformer needs --transformer FOLDER, to write to")
    try:
        with tempfile.TemporaryDirectory(prefix="nmt-bench-") as folder:
            TASKS[options.task](options, Path(folder))
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

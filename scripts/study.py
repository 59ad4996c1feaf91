"""Search for good values of configuration keys: random search with successive halving (Jamieson &
Talwalkar 2016).

    python scripts/study.py -c CONFIG --space SPACE.yaml -o FOLDER [--trials 16] [--steps 500 1500
    4500] [--jobs 2]

SPACE.yaml has a line for each key: a list of values, a range, or a range on a logarithmic scale
(whole numbers stay whole):

    model.dropout: {range: [0.1, 0.4]}
    training.learning_rate.peak: {log_range: [5.0e-4, 4.0e-3]}
    model.decoder.hidden_size: [256, 512]

Every trial has random values. All trials train for the first budget; the best third for the second;
and so on. The best of the last budget, the finalists, train with further seeds. Every training
starts from the beginning: with `learning_rate.steps: null`, which the study sets, a linear or
cosine schedule lasts as long as the budget, so the weights of a shorter training are of no use.

Scores are those of `nmt evaluate --split dev`; the test split is never used. Each training is a run
folder FOLDER/trial-NUMBER/BUDGET-seed-SEED. After an interruption, repeat the command: it
continues, and trains nothing twice. More trials, budgets, finalists or seeds extend a study. A
training that fails ranks last, and is tried again when the command is repeated. The results are
printed, and written to FOLDER/study.md and FOLDER/study.json.
"""

import argparse
import hashlib
import json
import os
import random
import shlex
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from math import exp, log
from pathlib import Path
from typing import Any

from nmt.config.load import load_config, read_yaml
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from nmt.data.manifest import MANIFEST
from nmt.errors import ConfigError, NmtError
from nmt.files import write_text
from nmt.run.checkpoint import read_progress
from nmt.run.folder import open_checkpoints

RESERVED_KEYS = (
    "name",
    "seed",
    "data",
    "training.max_steps",
    "training.max_minutes",
    "training.threads",
    "training.learning_rate.steps",
)
PREPARED_KEYS = ("tokenizer.", "vocabulary.")
MAX_DRAWS = 20  # per trial: combinations that break a rule, or occurred before, are drawn again


@dataclass(frozen=True)
class Trial:
    """A value for each key of the space."""

    number: int
    values: dict[str, Any]


@dataclass(frozen=True)
class Budget:
    """The length of a training, in steps or in minutes."""

    amount: float
    unit: str

    def __str__(self) -> str:
        return f"{self.amount:g}-{self.unit}"

    def overrides(self, base: Config) -> list[str]:
        limits = {
            "max_steps": None,
            "max_minutes": None,
            f"max_{self.unit}": int(self.amount) if self.unit == "steps" else self.amount,
        }
        if base.training.learning_rate.schedule != "step":
            limits["learning_rate.steps"] = None
        return [f"training.{key}={json.dumps(value)}" for key, value in limits.items()]


@dataclass(frozen=True)
class Result:
    """What a training came to. scores: metric -> score on the dev split; empty if it failed, for
    the reason `error`.
    """

    trial: int
    budget: str
    seed: int
    run: str
    scores: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    minutes: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Domain:
    """The values of a key: one of `values`, or a number from `low` to `high`, uniform or uniform in
    its logarithm.
    """

    values: Sequence[Any] = ()
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False

    @staticmethod
    def parse(key: str, form: Any) -> "Domain":
        """Of a value in the YAML file. Raises: ConfigError: it has another form, or the key is
        reserved for the study.
        """
        if any(f"{key}.".startswith(f"{reserved}.") for reserved in RESERVED_KEYS):
            raise ConfigError(
                f"{key}: the study sets it, or scores would not be comparable; remove it from "
                "the "
                "space"
            )
        match form:
            case [_, *_]:
                return Domain(values=form)
            case {"range": [int() | float() as low, int() | float() as high]} if (
                len(form) == 1 and low < high
            ):
                return Domain(low=low, high=high)
            case {"log_range": [int() | float() as low, int() | float() as high]} if (
                len(form) == 1 and 0 < low < high
            ):
                return Domain(low=low, high=high, is_log=True)
        text = (
            "write a list of values, {range: [low, high]} or {log_range: [low, high]} with "
            "low < high"
        )
        raise ConfigError(f"{key}: {text}; got {json.dumps(form)}")

    def draw(self, generator: random.Random) -> Any:
        """A random value: a whole number if both ends are, otherwise one with three significant
        digits.
        """
        if self.values:
            return generator.choice(self.values)
        is_whole = isinstance(self.low, int) and isinstance(self.high, int)
        low, high = (
            (self.low - 0.5, self.high + 0.5) if is_whole else (self.low, self.high)
        )  # each whole number gets its part
        value = (
            exp(generator.uniform(log(low), log(high)))
            if self.is_log
            else generator.uniform(low, high)
        )
        return min(max(round(value) if is_whole else float(f"{value:.3g}"), self.low), self.high)


def overrides_of(values: Mapping[str, Any]) -> list[str]:
    """For `load_config`: JSON is also YAML."""
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def draw_trials(base: Config, space: Mapping[str, Domain], count: int, seed: int) -> list[Trial]:
    """Different random trials with valid configurations, fewer than `count` if the space has no
    more.

    The first trials do not depend on `count`.

    Raises:
        ConfigError: no combination is valid.
    """
    generator, trials, problem = random.Random(seed), list[Trial](), None
    for _ in range(MAX_DRAWS * count):
        if len(trials) == count:
            break
        values = {key: domain.draw(generator) for key, domain in space.items()}
        try:
            load_config(base, overrides_of(values))
        except ConfigError as error:
            problem = error
            continue
        if values not in [trial.values for trial in trials]:
            trials.append(Trial(len(trials) + 1, values))
    if problem is not None and not trials:
        raise problem
    return trials


class Trainer:
    """Trains and scores configurations in a study's folder, several at once.

    Args:
        base: the configuration that the trials change.
        jobs: trainings at once. threads: of each. device: of all.
    """

    def __init__(self, folder: Path, base: Config, *, jobs: int, threads: int, device: str) -> None:
        self.folder, self.base, self.jobs, self.threads, self.device = (
            folder,
            base,
            jobs,
            threads,
            device,
        )
        self.processes: set[subprocess.Popen[str]] = set()

    def measure(self, trials: Iterable[tuple[Trial, int]], budget: Budget) -> list[Result]:
        """The results of trials, each with a seed, in the same order."""
        jobs = [(trial, seed, self._configure(trial, budget, seed)) for trial, seed in trials]
        for config in {config.prepared_folder: config for _, _, config in jobs}.values():
            self._prepare(config)
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                return list(
                    pool.map(lambda job: self._result(job[0], budget, job[1], job[2]), jobs)
                )
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(self.processes):
                    process.terminate()  # nmt train saves a checkpoint
                raise

    def _configure(self, trial: Trial, budget: Budget, seed: int) -> Config:
        prepared = self.base.prepared_folder
        data_values = {
            key: value for key, value in trial.values.items() if key.startswith(PREPARED_KEYS)
        }
        if data_values:
            digest = hashlib.sha256(json.dumps(data_values, sort_keys=True).encode()).hexdigest()
            prepared = self.folder / "prepared" / digest[:12]
        keys = [*budget.overrides(self.base), f"seed={seed}", f"training.threads={self.threads}"]
        return load_config(
            self.base,
            [*overrides_of(trial.values), *keys, f"data.prepared={json.dumps(str(prepared))}"],
        )

    def _prepare(self, config: Config) -> None:
        """Prepare the data unless it is. Raises: ConfigError if that fails."""
        if (config.prepared_folder / MANIFEST).exists():
            return
        stem = self.folder / "prepared" / config.prepared_folder.name
        stem.parent.mkdir(parents=True, exist_ok=True)
        write_text(stem.with_suffix(".yaml"), dump(config))
        status, _ = self.run_nmt(
            ["prepare", "-c", str(stem.with_suffix(".yaml"))], stem.with_suffix(".log")
        )
        if status:
            raise ConfigError(f"nmt prepare failed: {_last_line(stem.with_suffix('.log'))}")

    def _result(self, trial: Trial, budget: Budget, seed: int, config: Config) -> Result:
        """Train and score, unless that was done before."""
        run = self.folder / f"trial-{trial.number:03d}" / f"{budget}-seed-{seed}"
        result_file, log_file = run.with_name(f"{run.name}.json"), run.with_name(f"{run.name}.log")
        if result_file.exists():
            return Result(**json.loads(result_file.read_text(encoding="utf-8")))
        run.parent.mkdir(parents=True, exist_ok=True)
        config_file = run.with_name(f"{run.name}.yaml")
        write_text(config_file, dump(config))
        result = Result(trial.number, str(budget), seed, str(run.relative_to(self.folder)))
        train = [
            "train",
            "-c",
            str(config_file),
            "-o",
            str(run),
            "--resume",
            "--device",
            self.device,
        ]
        status, _ = self.run_nmt(train, log_file)
        if not status:
            status, output = self.run_nmt(
                ["evaluate", str(run), "--split", "dev", "--json", "--device", self.device],
                log_file,
            )
        if status:
            result = replace(result, error=_last_line(log_file))
        else:
            checkpoint = open_checkpoints(run, config).find("last")
            assert checkpoint is not None
            progress = read_progress(checkpoint)
            scores = {score["metric"]: score["score"] for score in json.loads(output)["scores"]}
            result = replace(
                result, scores=scores, steps=progress.step, minutes=progress.seconds / 60
            )
            write_text(result_file, json.dumps(asdict(result), indent=2))
        print(f"{result.run}: {_cells(result.scores) or result.error}", file=sys.stderr, flush=True)
        return result

    def run_nmt(self, words: Sequence[str], log_file: Path) -> tuple[int, str]:
        """Exit status and stdout of a command; its stderr is appended to the log."""
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads), "PYTHONUTF8": "1"}
        with log_file.open("a", encoding="utf-8") as stderr:
            command = [sys.executable, "-m", "nmt", *words]
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=environment,
                encoding="utf-8",
            )
            self.processes.add(process)
            output, _ = process.communicate()
            self.processes.discard(process)
        return process.returncode, output


def _last_line(log_file: Path) -> str:
    return (log_file.read_text(encoding="utf-8").strip().splitlines() or ["no message"])[-1]


@dataclass(frozen=True)
class Finalist:
    """A trial with several seeds: the mean of each metric and its standard deviation over the seeds
    (0 for one seed).
    """

    trial: int
    seeds: list[int]
    mean: dict[str, float]
    deviation: dict[str, float]


def rank(results: Sequence[Result], metric: str) -> list[Result]:
    """From the best to the worst; failed ones last."""
    return sorted(results, key=lambda result: -result.scores.get(metric, float("-inf")))


def halve(
    trainer: Trainer, trials: Sequence[Trial], budgets: Sequence[Budget], *, keep: int, metric: str
) -> list[list[Result]]:
    """Successive halving: the ranked results for each budget. One of `keep` trials gets the next
    budget.
    """
    rungs: list[list[Result]] = []
    for budget in budgets:
        ranked = rank(
            trainer.measure([(trial, trainer.base.seed) for trial in trials], budget), metric
        )
        rungs.append(ranked)
        best = [result.trial for result in ranked if result.scores][
            : max(1, round(len(trials) / keep))
        ]
        trials = [trial for number in best for trial in trials if trial.number == number]
        if not trials:
            raise ConfigError(f"all trainings failed; the first one: {ranked[0].error}")
    return rungs


def finish(
    trainer: Trainer, trials: Sequence[Trial], budget: Budget, *, n_seeds: int, metric: str
) -> tuple[list[Finalist], list[Result]]:
    """Train with further seeds. The finalists from the best mean to the worst, and all results."""
    seeds = range(trainer.base.seed, trainer.base.seed + n_seeds)
    results = trainer.measure([(trial, seed) for trial in trials for seed in seeds], budget)
    finalists = []
    for trial in trials:
        own = [result for result in results if result.trial == trial.number and result.scores]
        columns = {
            name: [result.scores[name] for result in own] for name in (own[0].scores if own else ())
        }
        mean = {name: statistics.fmean(scores) for name, scores in columns.items()}
        deviation = {
            name: statistics.stdev(scores) if len(scores) > 1 else 0.0
            for name, scores in columns.items()
        }
        finalists.append(Finalist(trial.number, [result.seed for result in own], mean, deviation))
    return sorted(
        finalists, key=lambda finalist: -finalist.mean.get(metric, float("-inf"))
    ), results


def to_markdown(
    trials: Sequence[Trial], rungs: Sequence[Sequence[Result]], finalists: Sequence[Finalist]
) -> str:
    """A table of the finalists, and one for each budget."""
    values = {trial.number: trial.values for trial in trials}
    keys = list(trials[0].values)
    lines = ["Scores on the dev split."]
    if finalists:
        metrics = list(finalists[0].mean)
        rows = [
            [entry.trial, *values[entry.trial].values(), len(entry.seeds)]
            + [
                f"{entry.mean[name]:.2f} ± {entry.deviation[name]:.2f}"
                if name in entry.mean
                else "failed"
                for name in metrics
            ]
            for entry in finalists
        ]
        lines += [
            "",
            "Finalists: mean and standard deviation over the seeds",
            "",
            *_table(["trial", *keys, "seeds", *metrics], rows),
        ]
    for ranked in rungs:
        metrics = list(ranked[0].scores)
        rows = [
            [result.trial, *values[result.trial].values()]
            + (
                [f"{result.scores[name]:.2f}" for name in metrics]
                if result.scores
                else [result.error, *[""] * (len(metrics) - 1)]
            )
            + [result.steps, f"{result.minutes:.1f}"]
            for result in ranked
        ]
        lines += [
            "",
            f"Budget {ranked[0].budget}",
            "",
            *_table(["trial", *keys, *metrics, "steps", "minutes"], rows),
        ]
    return "\n".join(lines) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    return [
        f"| {' | '.join(str(cell) for cell in row)} |"
        for row in (header, ["---"] * len(header), *rows)
    ]


def _cells(scores: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {score:.2f}" for name, score in scores.items())


def search(
    base: Config, space: dict[str, Any], folder: Path, trainer: Trainer, options: argparse.Namespace
) -> str:
    """The whole study; writes its results, and returns them as Markdown.

    Raises:
        ConfigError: the folder holds another study, or all trainings of a budget failed.
    """
    domains = {key: Domain.parse(key, form) for key, form in space.items()}
    trials = draw_trials(base, domains, options.trials, options.seed)
    identity = json.dumps(
        {"config": base.to_dict(), "space": space, "seed": options.seed}, indent=2
    )
    identity_file = folder / "definition.json"
    if identity_file.exists() and identity_file.read_text(encoding="utf-8") != identity:
        raise ConfigError(
            f"{folder}: holds a study with another configuration, space or seed; name another "
            "folder with -o"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_text(identity_file, identity)
    unit = "steps" if options.minutes is None else "minutes"
    budgets = [Budget(amount, unit) for amount in options.minutes or options.steps]
    rungs = halve(trainer, trials, budgets, keep=options.keep, metric=options.metric)
    best = [
        trial
        for result in rungs[-1]
        if result.scores
        for trial in trials
        if trial.number == result.trial
    ]
    finalists, final_results = finish(
        trainer,
        best[: options.finalists],
        budgets[-1],
        n_seeds=options.seeds,
        metric=options.metric,
    )
    text = to_markdown(trials, rungs, finalists)
    write_text(folder / "study.md", text)
    results = {
        "trials": [asdict(trial) for trial in trials],
        "rungs": [[asdict(result) for result in ranked] for ranked in rungs],
        "finalists": [asdict(finalist) for finalist in finalists],
        "final_results": [asdict(result) for result in final_results],
    }
    write_text(folder / "study.json", json.dumps(results, indent=2))
    winner = next(trial for trial in trials if trial.number == finalists[0].trial)
    options_of_best = " ".join(f"--set {shlex.quote(each)}" for each in overrides_of(winner.values))
    return f"{text}\nBest: {options_of_best}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-c", "--config", type=Path, required=True, help="the configuration that the trials change"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of it"
    )
    parser.add_argument(
        "--space", type=Path, required=True, help="keys to search, with their values"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the study")
    parser.add_argument(
        "--trials", type=positive, default=16, help="random combinations (%(default)s)"
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--steps",
        type=positive,
        nargs="+",
        default=[500, 1500, 4500],
        help="budgets in updates (%(default)s)",
    )
    group.add_argument(
        "--minutes",
        type=float,
        nargs="+",
        help="budgets in minutes, which depend on the machine and its load",
    )
    parser.add_argument(
        "--keep",
        type=positive,
        default=3,
        help="one of this many trials gets the next budget (%(default)s)",
    )
    parser.add_argument(
        "--finalists",
        type=positive,
        default=2,
        help="trials to train with further seeds (%(default)s)",
    )
    parser.add_argument(
        "--seeds", type=positive, default=3, help="seeds of each finalist (%(default)s)"
    )
    parser.add_argument(
        "--metric", choices=["BLEU", "chrF"], default="BLEU", help="what to rank by (%(default)s)"
    )
    parser.add_argument("--jobs", type=positive, default=1, help="trainings at once (%(default)s)")
    parser.add_argument(
        "--threads", type=positive, default=1, help="CPU threads of each training (%(default)s)"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the random combinations (%(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        base, folder = load_config(options.config, options.set), options.output.absolute()
        trainer = Trainer(
            folder, base, jobs=options.jobs, threads=options.threads, device=options.device
        )
        print(search(base, read_yaml(options.space), folder, trainer, options), end="")
    except NmtError as error:
        print(f"study: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("study: interrupted; repeat the command to continue", file=sys.stderr)
        return 1
    return 0


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

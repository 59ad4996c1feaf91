"""Measure how fast models are trained, and how much of what the machine can do that is.

    python scripts/bench_train.py [CONFIG...] [--set KEY=VALUE]... [--seconds 20] [--rounds 3] [--against SYSTEM]...
        [--peer-python SYSTEM=PYTHON]... [--json FILE]

For each CONFIG (default: scripts/bench/model-r.yaml), whose data must be prepared, it prints

- target tokens a second, <eos> included and padding not, of the loop that `nmt train` runs, and how many times those of each other
  system that is;
- operations a second, counted from the lengths of the sentences of the very batches (the formula is in scripts/bench/counting.py),
  and their share of what a product of two 2048 x 2048 float32 matrices reaches, which is measured before and after with the same
  threads: *computed*, padding and repeated work included, and *needed*, what the real tokens need alone;
- the process's peak of memory, and the shares of time: data (reading and padding batches), forward (with the loss, whose
  softmax makes its own gradient at once), backward (all the rest of it), and update (clipping, the optimizer and what remains).

SYSTEM is `reference`, the plain loop of the tutorials with padded batches of the same size; `reference-single`, the same a pair at
a time; `joeynmt` or `opennmt`, each in an environment of its own, which scripts/bench/peers.py says how to make. All see the same
tokens and vocabularies. They run in turn, round after round, each in a fresh process; figures are medians over the rounds, ratios
are taken within a round, so that whatever else the machine does strikes all alike. What cannot be measured is named, not guessed.
"""

import argparse
import json
import shlex
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.config.load import load
from nmt.config.schema import Config, ModelConfig
from nmt.data.corpus import Corpus, config_differences, load_manifest
from nmt.errors import DataError, NmtError
from nmt.files import write_text
from nmt.text.vocabulary import Vocabulary
from scripts.bench import peers
from scripts.bench.counting import count_words, multiply_adds, needed
from scripts.bench.rounds import (
    Figures,
    System,
    available_cores,
    environment_of,
    interpreter,
    machine,
    positive,
    run_rounds,
    show,
    work,
)

FOLDER = Path(__file__).resolve().parent / "bench"
DEFAULT = FOLDER / "model-r.yaml"
REFERENCES = ("reference", "reference-single")
SYSTEMS = (*REFERENCES, *peers.PEERS)
PARTS = ("data", "forward", "backward", "update")
COLUMNS = ("system", "tokens/s", "nmt is", "GFLOP/s", "of matmul", "needed", "memory", *PARTS)
PREPARED_BY = ("data", "tokenizer", "vocabulary")  # the sections that `nmt prepare` reads


@dataclass(frozen=True)
class Bench:
    """How all configurations are measured.

    Attributes:
        seconds: of a round, without start and warm-up.
        threads: of the CPU; by configuration if None.
        interpreters: of the peers that have an environment of their own.
    """

    seconds: float
    rounds: int
    against: Sequence[str]
    threads: int | None
    interpreters: Mapping[str, Path]

    def measure(self, config: Config) -> Figures:
        """All systems with one configuration.

        Raises:
            BenchError: nmt itself could not be measured.
        """
        threads = self.threads or config.training.threads or available_cores()
        with tempfile.TemporaryDirectory(prefix="nmt-bench-") as folder:
            systems = [self._build(name, config, threads, Path(folder)) for name in ("nmt", *dict.fromkeys(self.against))]
            run_rounds(systems, self.rounds, "nmt")
        return {
            "config": config.to_dict(),
            "name": config.name,
            "threads": threads,
            "seconds": self.seconds,
            "multiply_adds_per_token": forward_per_token(config),
            "systems": [summary(system, systems[0]) for system in systems],
        }

    def _build(self, name: str, config: Config, threads: int, folder: Path) -> System:
        environment = environment_of(threads)
        job = {"system": name, "threads": threads, "config": config.to_dict(), "seconds": self.seconds, "batch": 1}
        if name in peers.PEERS:
            return self._build_peer(name, config, folder, environment, threads)
        if name == "reference":
            job["batch"] = reference_batch(config)
        system = System(name, lambda number: work({**job, "round": number}, environment))
        if name in REFERENCES and (wrong := reference_misfits(config.model)):
            system.fault = f"the plain loop cannot follow {', '.join(wrong)}"
        return system

    def _build_peer(self, name: str, config: Config, folder: Path, environment: Mapping[str, str], threads: int) -> System:
        own = folder / name
        job = {"system": "matmul", "threads": threads}

        def run(number: int) -> Figures:
            before = work(job, environment)["matmul"]
            figures = peers.run(name, python, config, own, seconds=self.seconds, seed=config.seed + number, environment=environment)
            after = work(job, environment)["matmul"]
            return {**figures, "matmul": (before + after) / 2, "matmul_before_after": [before, after]}

        system = System(name, run)
        if wrong := peers.PEERS[name].misfits(config.model):
            system.fault = f"{peers.PEERS[name].title} does not have this model: {', '.join(wrong)}"
            return system
        try:
            python = peers.find(name, self.interpreters)
        except peers.PeerError as error:
            system.fault = str(error)
            return system
        own.mkdir()
        peers.write_data(config, own)
        return system


def check_prepared(config: Config, path: Path, overrides: Sequence[str]) -> None:
    """Raises: DataError, with the command that prepares it, if the data is not there or was prepared otherwise."""
    settings = [override for override in overrides if override.startswith(PREPARED_BY)]
    command = shlex.join(["nmt", "prepare", "-c", str(path), *(word for setting in settings for word in ("--set", setting))])
    folder = config.prepared_folder
    if not folder.exists():
        raise DataError(f"{folder}: not prepared yet; type: {command}")
    if found := list(config_differences(load_manifest(folder), config)):
        raise DataError(f"{folder}: prepared with another configuration ({'; '.join(found)}); type: {command} --overwrite")


def forward_per_token(config: Config) -> dict[str, float]:
    """Multiply-adds that a target token of the training data needs forward, by part of the model."""
    corpus = Corpus.load(config.prepared_folder, "train")
    positions = needed(corpus.src.lengths + 1, corpus.tgt.lengths + 1)
    vocabulary_size = len(Vocabulary.load(config.prepared_folder / "tgt.vocab.txt"))
    words = count_words(corpus, range(len(corpus)), vocabulary_size) if config.model.output == "adaptive" else None
    counts = multiply_adds(config.model, vocabulary_size, positions, words)
    return {part: count / positions.output for part, count in counts.items()}


def reference_batch(config: Config) -> int:
    """Sentences in a batch of the plain loop: as many as nmt's have on average, where those are made by tokens."""
    batch = config.training.batch
    if batch.unit == "sentences":
        return batch.number
    lengths = Corpus.load(config.prepared_folder, "train").tgt.lengths + 1
    return max(1, round(batch.number / float(lengths.mean())))


def reference_misfits(config: ModelConfig) -> list[str]:
    """The keys that the plain loop cannot follow; empty if it can be compared."""
    encoder, decoder, attention = config.encoder, config.decoder, config.attention
    wrong = {
        "model.decoder.kind": decoder.kind != "luong",
        "model.decoder.readout": decoder.readout != "attentional",
        "model.attention.score": attention.score not in ("general", "additive"),
        "model.attention.kind": attention.kind != "global",
        "model.attention.heads": attention.heads != 1,
        "model.encoder.cell": encoder.cell == "elman" or encoder.cell != decoder.cell,
        "model.encoder.layers": encoder.layers != 1 or decoder.layers != 1,
        "model.encoder.layer_norm": encoder.layer_norm or decoder.layer_norm,
        "model.bridge": config.bridge != "dense",
        "model.tie_embeddings": config.tie_embeddings != "none",
        "model.output": config.output != "softmax",
    }
    return [key for key, is_wrong in wrong.items() if is_wrong]


def summary(system: System, nmt: System) -> Figures:
    """The medians over the rounds, and how many times as fast nmt was in the same rounds."""
    if not system.rounds:
        return {"system": system.name, "fault": system.fault, "rounds": []}
    rates = [figures["tokens_per_second"] for figures in system.rounds]
    ratios = [own["tokens_per_second"] / rate for own, rate in zip(nmt.rounds, rates, strict=False)]
    result: Figures = {"system": system.name, "fault": system.fault, "ratio": statistics.median(ratios)}
    for key in ("tokens_per_second", "matmul", "peak_memory", "computed", "needed"):
        values = [figures[key] for figures in system.rounds if figures.get(key) is not None]
        result[key] = statistics.median(values) if values else None
    result["range"] = [min(rates), max(rates)]
    for key in ("computed", "needed"):
        shares = [figures[key] / figures["matmul"] for figures in system.rounds if figures.get(key) is not None]
        result[f"{key}_share"] = statistics.median(shares) if shares else None
    if "shares" in system.rounds[0]:
        result["shares"] = {part: statistics.median(figures["shares"][part] for figures in system.rounds) for part in PARTS}
    result["rounds"] = system.rounds
    return result


def to_table(results: Figures) -> str:
    """What was measured with one configuration, as Markdown."""
    measured = [row for row in results["systems"] if row["rounds"]]
    rated = statistics.median(row["matmul"] for row in measured)
    counts = results["multiply_adds_per_token"]
    parts = ", ".join(f"{part} {count / 1e6:.2f}" for part, count in sorted(counts.items(), key=lambda item: -item[1]) if count)
    rounds = len(measured[0]["rounds"])
    lines = [
        f"{results['name']}: rounds {rounds} of {results['seconds']:g} s, threads {results['threads']}, "
        f"matrix product {rated / 1e9:.1f} GFLOP/s",
        f"Forward {sum(counts.values()) / 1e6:.2f} million multiply-adds a target token: {parts}",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(_cells(row))} |" for row in measured),
    ]
    faults = [f"{row['system']}: {row['fault']}" for row in results["systems"] if row["fault"]]
    return "\n".join([*lines, *(["", *faults] if faults else [])])


def _cells(row: Figures) -> list[str]:
    low, high = row["range"]
    shares = row.get("shares") or {}
    return [
        row["system"],
        f"{row['tokens_per_second']:,.0f} [{low:,.0f}, {high:,.0f}]",
        f"{row['ratio']:.2f} x",
        show(row["computed"], "{:.1f}", 1e9),
        show(row["computed_share"], "{:.1%}"),
        show(row["needed_share"], "{:.1%}"),
        show(row["peak_memory"], "{:,.0f} MB", 1e6),
        *(show(shares.get(part), "{:.1%}") for part in PARTS),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure how fast models are trained.")
    parser.add_argument("configs", nargs="*", type=Path, metavar="CONFIG", help=f"configurations ({DEFAULT.name})")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of each configuration")
    parser.add_argument("--seconds", type=positive, default=20, help="of a round, without start and warm-up (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of each system (%(default)s)")
    parser.add_argument("--against", action="append", default=[], choices=SYSTEMS, help="another system; may be given again")
    parser.add_argument("--peer-python", action="append", default=[], type=interpreter, metavar="SYSTEM=PYTHON", help="its Python")
    parser.add_argument("--threads", type=int, help="of the CPU (training.threads, or all cores)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures there")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or (options.threads or 1) < 1:
        parser.error("--rounds and --threads must be at least 1")
    bench = Bench(options.seconds, options.rounds, options.against, options.threads, dict(options.peer_python))
    try:
        configs = []
        for path in options.configs or [DEFAULT]:
            configs.append(load(path, options.set))
            check_prepared(configs[-1], path, options.set)
        results = []
        for config in configs:
            results.append(bench.measure(config))
            print(to_table(results[-1]), end="\n\n", flush=True)
        if options.json is not None:
            write_text(options.json, json.dumps({"machine": machine(), "results": results}, indent=2, ensure_ascii=False) + "\n")
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

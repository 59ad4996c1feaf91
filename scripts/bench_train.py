"""Measure the speed of training, and compare it with the peak of the machine and with other
toolkits.

    python scripts/bench_train.py [CONFIG...] [--set KEY=VALUE]... [--seconds 20] [--rounds 3]
        [--against SYSTEM]... [--peer-python SYSTEM=PYTHON]... [--json FILE]

For each CONFIG (default: scripts/bench/model-r.yaml), whose data must be prepared, it prints

- target tokens per second of the loop that `nmt train` runs (with <eos>, without padding), and the
ratio to each other system; - operations per second, counted from the sentence lengths of the
  batches (scripts/bench/counting.py), and their share of the speed of a product of two 2048 x 2048
  float32 matrices, measured before and after with the same threads: *computed*, padding and
  repeated work included, and *needed*, for the real tokens only;
- the peak memory of the process, and the shares of time: data (reading and padding batches),
  forward (with the loss, whose softmax computes its own gradient), backward (all other gradients),
  and update (clipping, the optimizer and the rest).

SYSTEM is `reference`, the plain loop of the tutorials with padded batches of the same size;
`reference-single`, the same loop with one pair per batch; `joeynmt` or `opennmt`, each in its own
environment (scripts/bench/peers.py says how to create it). All systems see the same tokens and
vocabularies. They run in turn, round after round, each in a new process. Figures are medians over
the rounds, and ratios are computed within a round, so that other load on the machine affects all
systems alike. A figure that cannot be measured stays empty.
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
from nmt.data.corpus import Corpus
from nmt.data.manifest import config_differences, load_manifest
from nmt.errors import DataError, NmtError
from nmt.files import write_text
from nmt.text.vocabulary import Vocabulary
from scripts.bench import peers
from scripts.bench.rounds import (
    BenchSystem,
    Figures,
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
DEFAULT_CONFIG = FOLDER / "model-r.yaml"
REFERENCES = ("reference", "reference-single")
SYSTEMS = (*REFERENCES, *peers.PEERS)
PARTS = ("data", "forward", "backward", "update")
COLUMNS = ("system", "tokens/s", "nmt is", "GFLOP/s", "of matmul", "needed", "memory", *PARTS)
PREPARE_SECTIONS = ("data", "tokenizer", "vocabulary")  # the sections that `nmt prepare` reads


@dataclass(frozen=True)
class Bench:
    """The settings of the benchmark.

    Attributes:
        seconds: duration of a round, without start and warm-up.
        threads: CPU threads; None for those of the configuration.
        interpreters: the Python of each peer that has its own environment.
    """

    seconds: float
    rounds: int
    against: Sequence[str]
    threads: int | None
    interpreters: Mapping[str, Path]

    def measure(self, config: Config) -> Figures:
        """Measure all systems with one configuration.

        Raises:
            BenchError: nmt itself failed.
        """
        threads = self.threads or config.training.threads or available_cores()
        with tempfile.TemporaryDirectory(prefix="nmt-bench-") as folder:
            systems = [
                self._build(name, config, threads, Path(folder))
                for name in ("nmt", *dict.fromkeys(self.against))
            ]
            run_rounds(systems, self.rounds, "nmt")
        return {
            "config": config.to_dict(),
            "name": config.name,
            "threads": threads,
            "seconds": self.seconds,
            "multiply_adds_per_token": forward_per_token(config),
            "systems": [summary(system, systems[0]) for system in systems],
        }

    def _build(self, name: str, config: Config, threads: int, folder: Path) -> BenchSystem:
        environment = environment_of(threads)
        job = {
            "system": name,
            "threads": threads,
            "config": config.to_dict(),
            "seconds": self.seconds,
            "batch": 1,
        }
        if name in peers.PEERS:
            return self._build_peer(name, config, folder, environment, threads)
        if name == "reference":
            job["batch"] = reference_batch(config)
        system = BenchSystem(name, lambda number: work({**job, "round": number}, environment))
        if name in REFERENCES and (unsupported := unsupported_by_reference(config.model)):
            system.error = f"the plain loop does not support {', '.join(unsupported)}"
        return system

    def _build_peer(
        self, name: str, config: Config, folder: Path, environment: Mapping[str, str], threads: int
    ) -> BenchSystem:
        data = folder / name
        job = {"system": "matmul", "threads": threads}

        def run(number: int) -> Figures:
            before = work(job, environment)["matmul"]
            figures = peers.run(
                name,
                python,
                config,
                data,
                seconds=self.seconds,
                seed=config.seed + number,
                environment=environment,
            )
            after = work(job, environment)["matmul"]
            return {
                **figures,
                "matmul": (before + after) / 2,
                "matmul_before_after": [before, after],
            }

        system = BenchSystem(name, run)
        if unsupported := peers.PEERS[name].unsupported_keys(config.model):
            system.error = (
                f"{peers.PEERS[name].title} does not support this model: {', '.join(unsupported)}"
            )
            return system
        try:
            python = peers.find(name, self.interpreters)
        except peers.PeerError as error:
            system.error = str(error)
            return system
        data.mkdir()
        peers.write_data(config, data)
        return system


def check_prepared(config: Config, path: Path, overrides: Sequence[str]) -> None:
    """Raises: DataError: the data is missing, or was prepared with another configuration; with the
    command that prepares it.
    """
    settings = [override for override in overrides if override.startswith(PREPARE_SECTIONS)]
    command = shlex.join(
        [
            "nmt",
            "prepare",
            "-c",
            str(path),
            *(word for setting in settings for word in ("--set", setting)),
        ]
    )
    folder = config.prepared_folder
    if not folder.exists():
        raise DataError(f"{folder}: not prepared yet; run: {command}")
    if differences := list(config_differences(load_manifest(folder), config)):
        raise DataError(
            f"{folder}: prepared with another configuration ({'; '.join(differences)}); run: "
            f"{command} --overwrite"
        )


def forward_per_token(config: Config) -> dict[str, float]:
    """Multiply-adds of the forward pass per target token of the training data, by part of the
    model.
    """
    from scripts.bench.counting import (
        count_words,
        measure_costs,
        multiply_adds,
        needed,
    )  # imports torch

    corpus = Corpus.load(config.prepared_folder, "train")
    positions = needed(corpus.src.lengths + 1, corpus.tgt.lengths + 1)
    vocabulary_size = len(Vocabulary.load(config.prepared_folder / "tgt.vocab.txt"))
    words = (
        count_words(corpus, range(len(corpus)), vocabulary_size)
        if config.model.output == "adaptive"
        else None
    )
    counts = multiply_adds(measure_costs(config.model, vocabulary_size), positions, words)
    return {part: count / positions.output for part, count in counts.items()}


def reference_batch(config: Config) -> int:
    """The batch size of the plain loop in sentences: that of nmt, or its average if nmt batches by
    tokens.
    """
    batch = config.training.batch
    if batch.unit == "sentences":
        return batch.size
    lengths = Corpus.load(config.prepared_folder, "train").tgt.lengths + 1
    return max(1, round(batch.size / float(lengths.mean())))


def unsupported_by_reference(config: ModelConfig) -> list[str]:
    """The configuration keys that the plain loop does not support; empty if it can be compared."""
    encoder, decoder, attention = config.encoder, config.decoder, config.attention
    checks = {
        "model.decoder.kind": decoder.kind != "luong",
        "model.decoder.readout": decoder.readout != "attentional",
        "model.attention.score": attention.score not in ("general", "additive"),
        "model.attention.kind": attention.kind != "global",
        "model.attention.heads": attention.heads != 1,
        "model.encoder.cell": encoder.cell not in ("lstm", "gru") or encoder.cell != decoder.cell,
        "model.encoder.layers": encoder.layers != 1 or decoder.layers != 1,
        "model.encoder.layer_norm": encoder.layer_norm or decoder.layer_norm,
        "model.bridge": config.bridge != "dense",
        "model.tie_embeddings": config.tie_embeddings != "none",
        "model.output": config.output != "softmax",
    }
    return [key for key, is_unsupported in checks.items() if is_unsupported]


def summary(system: BenchSystem, nmt: BenchSystem) -> Figures:
    """The medians over the rounds, and the speed-up of nmt in the same rounds."""
    if not system.rounds:
        return {"system": system.name, "fault": system.error, "rounds": []}
    rates = [figures["tokens_per_second"] for figures in system.rounds]
    ratios = [
        figures["tokens_per_second"] / rate
        for figures, rate in zip(nmt.rounds, rates, strict=False)
    ]
    result: Figures = {
        "system": system.name,
        "fault": system.error,
        "ratio": statistics.median(ratios),
    }
    for key in ("tokens_per_second", "matmul", "peak_memory", "computed", "needed"):
        values = [figures[key] for figures in system.rounds if figures.get(key) is not None]
        result[key] = statistics.median(values) if values else None
    result["range"] = [min(rates), max(rates)]
    for key in ("computed", "needed"):
        shares = [
            figures[key] / figures["matmul"]
            for figures in system.rounds
            if figures.get(key) is not None
        ]
        result[f"{key}_share"] = statistics.median(shares) if shares else None
    if "shares" in system.rounds[0]:
        result["shares"] = {
            part: statistics.median(figures["shares"][part] for figures in system.rounds)
            for part in PARTS
        }
    result["rounds"] = system.rounds
    return result


def to_table(results: Figures) -> str:
    """The results for one configuration, as Markdown."""
    measured = [row for row in results["systems"] if row["rounds"]]
    matmul_rate = statistics.median(row["matmul"] for row in measured)
    counts = results["multiply_adds_per_token"]
    parts = ", ".join(
        f"{part} {count / 1e6:.2f}"
        for part, count in sorted(counts.items(), key=lambda item: -item[1])
        if count
    )
    rounds = len(measured[0]["rounds"])
    lines = [
        f"{results['name']}: rounds {rounds} of {results['seconds']:g} s, threads "
        f"{results['threads']}, "
        f"matrix product {matmul_rate / 1e9:.1f} GFLOP/s",
        f"Forward {sum(counts.values()) / 1e6:.2f} million multiply-adds per target token: {parts}",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(_cells(row))} |" for row in measured),
    ]
    errors = [f"{row['system']}: {row['fault']}" for row in results["systems"] if row["fault"]]
    return "\n".join([*lines, *(["", *errors] if errors else [])])


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
    parser = argparse.ArgumentParser(description="Measure the speed of training.")
    parser.add_argument(
        "configs",
        nargs="*",
        type=Path,
        metavar="CONFIG",
        help=f"configurations ({DEFAULT_CONFIG.name})",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key of each configuration",
    )
    parser.add_argument(
        "--seconds",
        type=positive,
        default=20,
        help="duration of a round, without start and warm-up (%(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each system (%(default)s)")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        choices=SYSTEMS,
        help="another system; repeat for several",
    )
    parser.add_argument(
        "--peer-python",
        action="append",
        default=[],
        type=interpreter,
        metavar="SYSTEM=PYTHON",
        help="its Python",
    )
    parser.add_argument("--threads", type=int, help="CPU threads (training.threads, or all cores)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to FILE")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or (options.threads or 1) < 1:
        parser.error("--rounds and --threads must be at least 1")
    bench = Bench(
        options.seconds, options.rounds, options.against, options.threads, dict(options.peer_python)
    )
    try:
        configs = []
        for path in options.configs or [DEFAULT_CONFIG]:
            configs.append(load(path, options.set))
            check_prepared(configs[-1], path, options.set)
        results = []
        for config in configs:
            results.append(bench.measure(config))
            print(to_table(results[-1]), end="\n\n", flush=True)
        if options.json is not None:
            write_text(
                options.json,
                json.dumps({"machine": machine(), "results": results}, indent=2, ensure_ascii=False)
                + "\n",
            )
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

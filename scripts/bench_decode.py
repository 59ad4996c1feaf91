"""Measure the translation speed of a trained run, what faster settings cost in BLEU, and compare
with other toolkits.

    python scripts/bench_decode.py [RUN] [--split test] [--sentences 500] [--beam K]... [--shortlist
        50] [--rounds 3] [--against SYSTEM]... [--peer-python SYSTEM=PYTHON]... [--peer-updates 300]
        [--peer-folder DIR] [--json FILE]

For each beam (default: 1 and 5), and for exact search, search with a shortlist (if `nmt lexicon`
has written the lexicon), with 8-bit integers, and with both, it prints

- sentences and output tokens per second, <eos> included, from raw text to raw text, without the
start of the process;
- the milliseconds for a single sentence, median and 99th percentile, over the first `--singles`
sentences;
- the operations of all matrix products in the search, counted by scripts/bench/counting.py, as a
  share of the speed of a product of two 2048 x 2048 float32 matrices; finished hypotheses and
  padding are included;
- the peak memory of the process, words computed per position, BLEU, and length in tokens: shorter
output takes less time.

SYSTEM is `reference`, the same model with the plain search of scripts/bench/plain_search.py, one
hypothesis and one step at a time; or `joeynmt`, `opennmt`, each in its own environment (see
scripts/bench/peers.py). A peer first trains the same model on the same tokens for `--peer-updates`;
this is not measured. Its time is that of the whole translation minus the time for a single
sentence, which stands for its start; figures that it does not report stay empty. All systems run in
turn, round after round, each in a new process. Figures are medians over the rounds, and ratios are
computed within a round.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.config.schema import Config
from nmt.data.corpus import read_sentences
from nmt.errors import NmtError
from nmt.evaluation.scores import score
from nmt.extras.lexicon.lexicon import LEXICON_FILE
from nmt.files import write_text
from nmt.run.checkpoint import step_of
from nmt.run.folder import (
    check_same_data,
    find_checkpoint,
    find_run,
    load_run_config,
    load_tokenizers,
)
from scripts.bench import peers
from scripts.bench.peer_decode import PeerModel
from scripts.bench.rounds import (
    BenchSystem,
    Figures,
    available_cores,
    environment_of,
    interpreter,
    machine,
    run_rounds,
    show,
    work,
)

EXACT: dict[str, object] = {"shortlist": 0, "precision": "float32"}
SYSTEMS = ("reference", *peers.PEERS)
KEYS = (
    "sentences_per_second",
    "tokens_per_second",
    "latency",
    "latency_99",
    "computed",
    "matmul",
    "peak_memory",
    "words_scored",
    "bleu",
    "length",
)
COLUMNS = (
    "system",
    "beam",
    "sentences/s",
    "tokens/s",
    "of exact",
    "ms",
    "ms (99 %)",
    "of matmul",
    "memory",
    "words scored",
    "BLEU",
    "length",
)


@dataclass(frozen=True)
class Bench:
    """The settings of the benchmark.

    Attributes:
        run, prepared: the run folder and the prepared folder. sentences: number from the split.
            singles: how many of them are also translated one at a time.
        shortlist: candidates for each source word. updates: training updates of the peers.
    """

    run: Path
    prepared: Path
    config: Config
    split: str
    sentences: int
    singles: int
    shortlist: int
    threads: int
    updates: int
    interpreters: Mapping[str, Path]

    def systems(
        self, beams: Sequence[int], against: Sequence[str], folder: Path
    ) -> Iterator[BenchSystem]:
        """All systems, nmt's exact search first; peers work in `folder`."""
        models = {
            name: self._build_peer(name, folder / name)
            for name in dict.fromkeys(against)
            if name in peers.PEERS
        }
        for beam in beams:
            for name, overrides in self.variants().items():
                yield self._nmt(f"nmt {name}", beam, overrides)
            for name in dict.fromkeys(against):
                yield (
                    self._peer(name, beam, models[name])
                    if name in models
                    else self._nmt(name, beam, EXACT, plain=True)
                )

    def variants(self) -> dict[str, dict[str, object]]:
        """The decoding settings to measure, by name."""
        short = {**EXACT, "shortlist": self.shortlist}
        variants = {"exact": EXACT, "int8": {**EXACT, "precision": "int8"}}
        if (
            self.shortlist
            and (self.run / LEXICON_FILE).exists()
            and self.config.model.output == "softmax"
        ):
            variants |= {"shortlist": short, "shortlist int8": {**short, "precision": "int8"}}
        return variants

    def _nmt(
        self, name: str, beam: int, changes: Mapping[str, object], *, plain: bool = False
    ) -> BenchSystem:
        overrides = [f"decoding.{key}={value}" for key, value in {"beam": beam, **changes}.items()]
        job = {
            "run": str(self.run),
            "prepared": str(self.prepared),
            "split": self.split,
            "sentences": self.sentences,
        }
        job |= {
            "singles": self.singles,
            "threads": self.threads,
            "plain": plain,
            "overrides": overrides,
            "system": name,
        }
        return BenchSystem(
            f"{name}, beam {beam}",
            lambda _: work(job, environment_of(self.threads), "decode_worker.py"),
        )

    def _build_peer(self, name: str, folder: Path) -> PeerModel | str:
        """A peer with its trained model, or the reason why it cannot be measured."""
        if unsupported := peers.PEERS[name].unsupported_keys(self.config.model):
            return (
                f"{peers.PEERS[name].title} does not support this model: {', '.join(unsupported)}"
            )
        try:
            python = peers.find(name, self.interpreters)
            model = PeerModel(
                name, python, self.config, folder, self.updates, environment_of(self.threads)
            )
            model.prepare(self.split, self.sentences)
        except peers.PeerError as error:
            return str(error)
        return model

    def _peer(self, name: str, beam: int, model: PeerModel | str) -> BenchSystem:
        def run(_: int) -> Figures:
            assert isinstance(model, PeerModel)
            start = model.translate("one", beam, self.config.decoding.batch)[0]
            seconds, memory, outputs = model.translate("test", beam, self.config.decoding.batch)
            if seconds <= start:
                raise peers.PeerError(
                    "the translation took no longer than the start of the process; raise "
                    "--sentences"
                )
            return self._peer_figures(outputs, seconds - start, memory)

        return BenchSystem(
            f"{name}, beam {beam}", run, error=model if isinstance(model, str) else None
        )

    def _peer_figures(
        self, outputs: Sequence[Sequence[str]], seconds: float, memory: int | None
    ) -> Figures:
        tokens = sum(len(output) + 1 for output in outputs)
        references = read_sentences(self.prepared, self.split, "tgt")[: len(outputs)]
        _, tokenizer = load_tokenizers(self.run, self.config)
        texts, lowercase = (
            [tokenizer.join(output) for output in outputs],
            self.config.tokenizer.lowercase,
        )
        (bleu,) = score(texts, [references], ["BLEU"], lowercase=lowercase)
        return {
            "sentences_per_second": len(outputs) / seconds,
            "tokens_per_second": tokens / seconds,
            "seconds": seconds,
            "length": tokens / len(outputs),
            "peak_memory": memory,
            "bleu": bleu.value,
        }


def summary(system: BenchSystem, exact: BenchSystem) -> Figures:
    """The medians over the rounds, and the speed relative to exact search in the same rounds."""
    result: Figures = {"system": system.name, "fault": system.error, "rounds": system.rounds}
    if not system.rounds:
        return result
    pairs = zip(system.rounds, exact.rounds, strict=False)
    result["ratio"] = statistics.median(
        figures["sentences_per_second"] / base["sentences_per_second"] for figures, base in pairs
    )
    for key in KEYS:
        values = [figures[key] for figures in system.rounds if figures.get(key) is not None]
        result[key] = statistics.median(values) if values else None
    shares = [
        figures["computed"] / figures["matmul"]
        for figures in system.rounds
        if "computed" in figures
    ]
    result["computed_share"] = statistics.median(shares) if shares else None
    return result


def to_table(results: Figures) -> str:
    """The results as Markdown."""
    measured = [row for row in results["systems"] if row["rounds"]]
    matmul_rates = [row["matmul"] for row in measured if row["matmul"] is not None]
    lines = [
        f"{results['run']}, step {results['step']}: {results['sentences']} sentences of "
        f"{results['split']}, "
        f"rounds {len(measured[0]['rounds'])}, threads {results['threads']}, "
        f"matrix product {statistics.median(matmul_rates) / 1e9:.1f} GFLOP/s",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(_cells(row))} |" for row in measured),
    ]
    errors = [f"{row['system']}: {row['fault']}" for row in results["systems"] if row["fault"]]
    return "\n".join([*lines, *(["", *errors] if errors else [])])


def _cells(row: Figures) -> list[str]:
    name, _, beam = row["system"].partition(", beam ")
    return [
        name,
        beam,
        f"{row['sentences_per_second']:,.1f}",
        f"{row['tokens_per_second']:,.0f}",
        f"{row['ratio']:.2f} x",
        show(row["latency"], "{:.1f}", 1e-3),
        show(row["latency_99"], "{:.1f}", 1e-3),
        show(row["computed_share"], "{:.1%}"),
        show(row["peak_memory"], "{:,.0f} MB", 1e6),
        show(row["words_scored"], "{:,.0f}"),
        f"{row['bleu']:.2f}",
        f"{row['length']:.2f}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the translation speed of a trained run.")
    parser.add_argument(
        "run", nargs="?", type=Path, metavar="RUN", help="the run folder (the last run)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="its prepared folder, if you moved it"
    )
    parser.add_argument(
        "--split",
        choices=("dev", "test"),
        default="test",
        help="the split to translate (%(default)s)",
    )
    parser.add_argument(
        "--sentences", type=int, default=500, help="number of sentences (%(default)s)"
    )
    parser.add_argument(
        "--singles",
        type=int,
        default=100,
        help="number of sentences also translated one at a time (%(default)s)",
    )
    parser.add_argument(
        "--beam",
        action="append",
        type=int,
        metavar="K",
        help="beam size; repeat for several (1 and 5)",
    )
    parser.add_argument(
        "--shortlist",
        type=int,
        default=50,
        metavar="N",
        help="decoding.shortlist of that variant (%(default)s)",
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
    parser.add_argument(
        "--peer-updates",
        type=int,
        default=300,
        metavar="N",
        help="training updates of a peer (%(default)s)",
    )
    parser.add_argument(
        "--peer-folder",
        type=Path,
        metavar="DIR",
        help="where to keep the peers' models for the next time",
    )
    parser.add_argument("--threads", type=int, help="CPU threads (all cores)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to FILE")
    options = parser.parse_args(arguments)
    beams = options.beam or [1, 5]
    counts = [
        options.sentences,
        options.singles,
        options.rounds,
        options.peer_updates,
        options.threads or 1,
        *beams,
    ]
    if min(counts) < 1 or options.shortlist < 0:
        parser.error(
            "--sentences, --singles, --rounds, --peer-updates, --threads and --beam must be at "
            "least 1"
        )
    try:
        results = measure(options, beams)
        print(to_table(results))
        if options.json is not None:
            write_text(
                options.json,
                json.dumps({"machine": machine(), **results}, indent=2, ensure_ascii=False) + "\n",
            )
    except (NmtError, peers.PeerError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def measure(options: Any, beams: Sequence[int]) -> Figures:
    """Measure all systems. Raises: NmtError: nmt itself cannot be measured."""
    run = find_run(options.run)
    config = load_run_config(run)
    prepared = options.data or config.prepared_folder
    check_same_data(run, prepared)
    step = step_of(find_checkpoint(run).name)  # an average has no progress file
    config = config.model_copy(
        update={"data": config.data.model_copy(update={"prepared": prepared})}
    )
    threads = options.threads or available_cores()
    n_sentences = min(options.sentences, len(read_sentences(prepared, options.split, "src")))
    bench = Bench(
        run=run,
        prepared=prepared,
        config=config,
        split=options.split,
        sentences=n_sentences,
        singles=min(options.singles, n_sentences),
        shortlist=options.shortlist,
        threads=threads,
        updates=options.peer_updates,
        interpreters=dict(options.peer_python),
    )
    with tempfile.TemporaryDirectory(prefix="nmt-bench-") as folder:
        systems = list(
            bench.systems(beams, options.against, (options.peer_folder or Path(folder)).resolve())
        )
        run_rounds(systems, options.rounds, "nmt exact")
    per_beam = len(systems) // len(beams)
    summaries = [
        summary(system, systems[index // per_beam * per_beam])
        for index, system in enumerate(systems)
    ]
    return {
        "run": str(run),
        "step": step,
        "split": options.split,
        "sentences": n_sentences,
        "threads": threads,
        "systems": summaries,
    }


if __name__ == "__main__":
    sys.exit(main())

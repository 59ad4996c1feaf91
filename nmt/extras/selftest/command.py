"""`nmt selftest`: tiny models, one for each kind of attention, learn to copy and to reverse."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import typer

from nmt import __version__
from nmt.commands.options import DeviceOption
from nmt.config.load import config_from_dict
from nmt.config.parts import ATTENTIONS, SCORES, DeviceName
from nmt.config.schema import Config, DecodingConfig
from nmt.data.batches import build_batch
from nmt.data.corpus import Corpus, Sequences
from nmt.decoding.search import search
from nmt.device import pick_device, set_up_device
from nmt.errors import ConfigError, NmtError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.progress import Update
from nmt.text.vocabulary import SPECIALS
from nmt.training.loop import Training, train_step
from nmt.training.loss import Loss

# The first source token says what to do with the others.
COPY, REVERSE = len(SPECIALS), len(SPECIALS) + 1
SYMBOLS = range(REVERSE + 1, REVERSE + 9)
MAX_SYMBOLS = 7
MAX_SYMBOLS_WITHOUT_QUERY = 3  # where the state of the decoder must remember all symbols
IGNORE_QUERY = ("linear", "none")  # scores
MIN_EXACT_MATCH = 0.95  # of a model that has learned
STOP_EXACT_MATCH = 0.98
CHECK_EVERY, MAX_STEPS = 100, 2000
COLUMNS = "{:<16}{:>12}{:>13}{:>8}{:>10}{:>11}{}"

TINY_MODEL: dict[str, Any] = {
    "embedding_size": 32,
    "encoder": {"hidden_size": 32},
    "bridge": "zero",
    "dropout": 0.0,
}


@dataclass(frozen=True)
class SelftestResult:
    """The result of one attention.

    Attributes:
        longest: symbols of the longest sequences.
        exact_match: share of unseen sequences with the right output.
        seconds, tokens_per_second: of training.
    """

    attention: str
    longest: int
    exact_match: float
    steps: int
    seconds: float
    tokens_per_second: float

    @property
    def learned(self) -> bool:
        """Whether it copies and reverses."""
        return self.exact_match >= MIN_EXACT_MATCH


def command(
    device: DeviceOption = "auto",
    attentions: Annotated[
        list[str] | None,
        typer.Option("--attention", help="Test only this one; may be repeated.", metavar="NAME"),
    ] = None,
) -> None:
    """Test this installation.

    Raises:
        ConfigError: an attention is unknown, or the device is not available.
        NmtError: a model has not learned.
    """
    results, where = run(device, attentions or ()), torch.device(pick_device(device))
    name = torch.cuda.get_device_name(where) if where.type == "cuda" else where
    print(f"nmt {__version__}, torch {torch.__version__}, on {name}")
    headings = ("attention", "max length", "exact match", "steps", "seconds", "tokens/s")
    print(COLUMNS.format(*headings, ""))
    failed = []
    for result in results:
        cells = (
            result.attention,
            result.longest,
            f"{result.exact_match:.1%}",
            f"{result.steps:,}",
            f"{result.seconds:.1f}",
            f"{result.tokens_per_second:,.0f}",
        )
        print(COLUMNS.format(*cells, "" if result.learned else "   did not learn"), flush=True)
        if not result.learned:
            failed.append(result.attention)
    if failed:
        raise NmtError(f"these models did not learn to copy and reverse: {', '.join(failed)}")


def run(device: DeviceName = "auto", attentions: Sequence[str] = ()) -> Iterator[SelftestResult]:
    """Train each of `attentions` (default: all) until it solves the task; yields each result.

    Raises:
        ConfigError: an attention is unknown, or the device is not available.
    """
    systems = list_systems()
    if unknown := [attention for attention in attentions if attention not in systems]:
        raise ConfigError(f"--attention {unknown[0]}: unknown; choose from {', '.join(systems)}")
    where = set_up_device(device)
    return (_train(name, build_config(systems[name]), where) for name in attentions or systems)


def list_systems() -> dict[str, dict[str, Any]]:
    """Every score, kind of attention and variant of the decoder: name -> sections of `model`."""
    attentions: dict[str, dict[str, Any]] = {score: {"score": score} for score in SCORES}
    for kind, part in ATTENTIONS.items():
        if kind != "global":
            score = "additive" if part.trait("sized") else "general"
            attentions[kind] = {"kind": kind, "score": score}
    attentions["heads"] = {"score": "dot", "heads": 2}
    additive, decoder = {"score": "additive"}, {"hidden_size": 64}
    bahdanau = {"kind": "bahdanau", "readout": "state"}
    conditional = {"kind": "conditional", "cell": "gru", "readout": "deep"}
    return {
        **{name: {"decoder": decoder, "attention": value} for name, value in attentions.items()},
        "input_feeding": {"decoder": {**decoder, "input_feeding": True}},
        "bahdanau": {"decoder": {**decoder, **bahdanau}, "attention": additive},
        "conditional": {"decoder": {**decoder, **conditional}, "attention": additive},
        "gnmt": {"decoder": {**decoder, "kind": "gnmt", "layers": 2}},
    }


def build_config(model: dict[str, Any]) -> Config:
    """The configuration of a tiny model with these sections."""
    training = {"batch": {"size": 32}, "learning_rate": {"peak": 0.005}}
    data = {"source": {"path": "none"}}
    return config_from_dict(
        {"name": "selftest", "data": data, "model": {**TINY_MODEL, **model}, "training": training}
    )


def _train(attention: str, config: Config, device: torch.device) -> SelftestResult:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more threads slow down such a small model
    torch.manual_seed(config.seed)
    model = Seq2Seq(config.model, SYMBOLS.stop, SYMBOLS.stop).to(device)
    training = Training.of(model, Corpus(Sequences(), Sequences()), config)
    loss = Loss(model, config.training)
    random = np.random.default_rng(config.seed)
    ignores_query = config.model.attention.score in IGNORE_QUERY
    longest = MAX_SYMBOLS_WITHOUT_QUERY if ignores_query else MAX_SYMBOLS
    unseen = [
        _draw_source(random, length)
        for length in range(1, longest + 1)
        for _ in range(200 // longest)
    ]
    start_time, n_tokens, exact_match, step = time.monotonic(), 0, 0.0, 0
    while exact_match < STOP_EXACT_MATCH and step < MAX_STEPS:
        step += 1
        length = int(random.integers(1, longest + 1))
        sources = [_draw_source(random, length) for _ in range(config.training.batch.size)]
        batch = build_batch(sources, [make_target(source) for source in sources])
        update = Update(step, 0, 0, 0, 1, 1, np.arange(len(batch)), [batch.to(device)])
        train_step(loss, training, update, config.training.learning_rate.peak)
        n_tokens += batch.n_tokens
        if step % CHECK_EVERY == 0:
            exact_match = _measure_exact_match(model, unseen)
    seconds = time.monotonic() - start_time
    torch.set_num_threads(threads)
    return SelftestResult(attention, longest, exact_match, step, seconds, n_tokens / seconds)


def _draw_source(random: np.random.Generator, length: int) -> list[int]:
    """The command, and `length` symbols."""
    symbols = random.choice([COPY, REVERSE]), *random.integers(SYMBOLS.start, SYMBOLS.stop, length)
    return [int(symbol) for symbol in symbols]


def make_target(source: Sequence[int]) -> list[int]:
    """The right output."""
    command, *symbols = source
    return symbols if command == COPY else symbols[::-1]


def _measure_exact_match(model: Seq2Seq, sources: Sequence[list[int]]) -> float:
    model.eval()
    results = search(model, sources, DecodingConfig(beam=1))
    model.train()
    found = [best[0].ids for best in results]
    return float(np.mean([ids == make_target(s) for ids, s in zip(found, sources, strict=True)]))

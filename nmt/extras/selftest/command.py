"""`nmt selftest`: train tiny models with each kind of attention to copy and to reverse sequences,
in one or two minutes.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import torch
import typer

from nmt import __version__
from nmt.commands.options import DeviceOption, JsonOption, to_json
from nmt.config.load import config_from_dict
from nmt.config.parts import ATTENTIONS, SCORES, DeviceName
from nmt.config.schema import Config, DecodingConfig
from nmt.data.batches import build_batch
from nmt.decoding.search import search
from nmt.device import pick_device, set_up_device
from nmt.errors import ConfigError, NmtError
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import SPECIALS
from nmt.training.loop import train_step
from nmt.training.objective import Objective
from nmt.training.optimization import build_optimizer

COPY, REVERSE = (
    len(SPECIALS),
    len(SPECIALS) + 1,
)  # the first source token: what to do with the other tokens
SYMBOLS = range(REVERSE + 1, REVERSE + 9)
MAX_SYMBOLS = 7
MAX_SYMBOLS_WITHOUT_QUERY = (
    3  # for scores that ignore the query, so that the state must remember all symbols
)
MIN_EXACT_MATCH = 0.95  # of a model that has learned
STOP_EXACT_MATCH = 0.98
CHECK_EVERY, MAX_STEPS = 100, 2000

TINY_MODEL: dict[str, Any] = {
    "embedding_size": 32,
    "encoder": {"hidden_size": 32},
    "bridge": "zero",
    "dropout": 0.0,
}
KIND_SCORES = {"coverage": "additive"}  # kinds that do not accept the default score


def command(
    device: DeviceOption = "auto",
    attentions: Annotated[
        list[str] | None,
        typer.Option("--attention", help="Test only this one; may be repeated.", metavar="NAME"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """The command line."""
    results = []
    iterator = run(device, attentions or ())  # checks the arguments before the header is printed
    if not as_json:
        print(header(device))
    for result in iterator:
        results.append(result)
        if not as_json:
            print(result.to_row(), flush=True)
    if as_json:
        print(to_json([result.to_dict() for result in results]))
    if failed := [result.attention for result in results if not result.learned]:
        raise NmtError(f"has not learned to copy and reverse: {', '.join(failed)}")


def list_systems() -> dict[str, dict[str, Any]]:
    """Every attention score, every kind of attention, and variants of the decoder: name -> sections
    of `model`.
    """
    attentions: dict[str, dict[str, Any]] = {score: {"score": score} for score in SCORES}
    attentions |= {
        kind: {"kind": kind, "score": KIND_SCORES.get(kind, "general")}
        for kind in ATTENTIONS
        if kind != "global"
    }
    attentions["heads"] = {"score": "dot", "heads": 2}
    return {
        **{
            name: {"decoder": {"hidden_size": 64}, "attention": attention}
            for name, attention in attentions.items()
        },
        "input_feeding": {"decoder": {"hidden_size": 64, "input_feeding": True}},
        "bahdanau": {
            "decoder": {"kind": "bahdanau", "readout": "state", "hidden_size": 64},
            "attention": {"score": "additive"},
        },
        "conditional": {
            "decoder": {"kind": "conditional", "cell": "gru", "readout": "deep", "hidden_size": 64},
            "attention": {"score": "additive"},
        },
        "gnmt": {"decoder": {"kind": "gnmt", "layers": 2, "hidden_size": 64}},
    }


@dataclass(frozen=True)
class SelftestResult:
    """The result of one attention.

    Attributes:
        longest: symbols of the longest sequences.
        exact_match: share of unseen sequences with the right output. seconds, tokens_per_second: of
            training.
    """

    attention: str
    longest: int
    exact_match: float
    steps: int
    seconds: float
    tokens_per_second: float

    @property
    def learned(self) -> bool:
        return self.exact_match >= MIN_EXACT_MATCH

    def to_row(self) -> str:
        """A line of the table under `header`."""
        figures = f"{self.longest:>12}{self.exact_match:>13.1%}{self.steps:>8,}{self.seconds:>10.1f}{self.tokens_per_second:>11,.0f}"
        return f"{self.attention:<16}{figures}{'' if self.learned else '   has not learned'}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "learned": self.learned}


def run(device: DeviceName = "auto", attentions: Sequence[str] = ()) -> Iterator[SelftestResult]:
    """Train each of `attentions` (default: all) until it solves the task, or for `MAX_STEPS`;
    yields each result when it is ready.

    Raises:
        ConfigError: an attention is unknown, or the device is not available.
    """
    systems = list_systems()
    if unknown := [attention for attention in attentions if attention not in systems]:
        raise ConfigError(f"--attention {unknown[0]}: unknown; choose from {', '.join(systems)}")
    torch_device = set_up_device(device)
    return (
        _train(name, build_config(systems[name]), torch_device) for name in attentions or systems
    )


def header(device: DeviceName = "auto") -> str:
    """The versions, the device, and the columns of the table."""
    torch_device = pick_device(device)
    where = str(torch_device)  # without the number of threads: each model trains on one
    if torch_device.type == "cuda":
        where = torch.cuda.get_device_name(torch_device)
    return (
        f"nmt {__version__}, torch {torch.__version__}, on {where}\n"
        f"{'attention':<16}{'max length':>12}{'exact match':>13}{'steps':>8}{'seconds':>10}{'tokens/s':>11}"
    )


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
    try:
        return _train_on_one_thread(attention, config, device)
    finally:
        torch.set_num_threads(threads)


def _train_on_one_thread(attention: str, config: Config, device: torch.device) -> SelftestResult:
    torch.manual_seed(config.seed)
    model = Seq2Seq(config.model, SYMBOLS.stop, SYMBOLS.stop).to(device)
    objective, optimizer = (
        Objective(model, config.training),
        build_optimizer(model, config.training),
    )
    random = np.random.default_rng(config.seed)
    longest = (
        MAX_SYMBOLS_WITHOUT_QUERY
        if config.model.attention.score in ("linear", "none")
        else MAX_SYMBOLS
    )
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
        train_step(objective, optimizer, [batch], step, config, config.training.learning_rate.peak)
        n_tokens += batch.n_tokens
        if step % CHECK_EVERY == 0:
            exact_match = _measure_exact_match(model, unseen)
    seconds = time.monotonic() - start_time
    return SelftestResult(attention, longest, exact_match, step, seconds, n_tokens / seconds)


def _draw_source(random: np.random.Generator, length: int) -> list[int]:
    """The command, and `length` symbols."""
    return [
        int(random.choice([COPY, REVERSE])),
        *random.integers(SYMBOLS.start, SYMBOLS.stop, size=length).tolist(),
    ]


def make_target(source: Sequence[int]) -> list[int]:
    """The right output."""
    command, *symbols = source
    return symbols if command == COPY else symbols[::-1]


def _measure_exact_match(model: Seq2Seq, sources: Sequence[list[int]]) -> float:
    model.eval()
    results = search(model, sources, DecodingConfig(beam=1))
    model.train()
    return float(
        np.mean(
            [
                best[0].ids == make_target(source)
                for best, source in zip(results, sources, strict=True)
            ]
        )
    )

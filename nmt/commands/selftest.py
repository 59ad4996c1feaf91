"""`nmt selftest`: does this installation, on this device, learn with each attention? To copy and to reverse, in seconds."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from nmt.config.load import config_from_dict
from nmt.config.names import DeviceName
from nmt.config.schema import Config, DecodingConfig
from nmt.data.batching import build_batch
from nmt.decoding.search import search
from nmt.errors import ConfigError
from nmt.model.device import pick_device, set_up_device
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import SPECIALS
from nmt.training.loop import train_step
from nmt.training.optimizers import build_optimizer

COPY, REVERSE = len(SPECIALS), len(SPECIALS) + 1  # the first token of a source says what to do with the rest
SYMBOLS = range(REVERSE + 1, REVERSE + 9)
LONGEST, LONGEST_REMEMBERED = 7, 3  # symbols; the second for what cannot look where it wants, and must remember them all
ENOUGH = 0.95  # exact match of one that has learned
CHECK_EVERY, MOST_STEPS = 100, 2000  # without attention, the long ones are far from learned by then

LUONG: dict[str, Any] = {"decoder": {"hidden_size": 64}}
BAHDANAU: dict[str, Any] = {"decoder": {"kind": "bahdanau", "readout": "state", "hidden_size": 64}}
SYSTEMS: dict[str, dict[str, Any]] = {
    "dot": {**LUONG, "attention": {"score": "dot"}},
    "general": {**LUONG, "attention": {"score": "general"}},
    "concat": {**LUONG, "attention": {"score": "concat"}},
    "additive": {**LUONG, "attention": {"score": "additive"}},
    "concat_shared": {**LUONG, "attention": {"score": "concat_shared"}},
    "linear": {**LUONG, "attention": {"score": "linear"}},
    "none": {**LUONG, "attention": {"score": "none"}},
    "local_m": {**LUONG, "attention": {"kind": "local_m"}},
    "local_p": {**LUONG, "attention": {"kind": "local_p"}},
    "coverage": {**LUONG, "attention": {"score": "additive", "kind": "coverage"}},
    "heads": {**LUONG, "attention": {"score": "dot", "heads": 2}},
    "input_feeding": {"decoder": {"hidden_size": 64, "input_feeding": True}},
    "bahdanau": {**BAHDANAU, "attention": {"score": "additive"}},
}


@dataclass(frozen=True)
class Outcome:
    """How one attention did.

    Attributes:
        longest: symbols of the longest sequences.
        exact_match: share of unseen sequences that came out right. seconds, tokens_per_second: of training.
    """

    attention: str
    longest: int
    exact_match: float
    steps: int
    seconds: float
    tokens_per_second: float

    @property
    def learned(self) -> bool:
        return self.exact_match >= ENOUGH

    def to_row(self) -> str:
        """A line of the table under `header`."""
        figures = f"{self.longest:>8}{self.exact_match:>13.1%}{self.steps:>8,}{self.seconds:>10.1f}{self.tokens_per_second:>11,.0f}"
        return f"{self.attention:<16}{figures}{'' if self.learned else '   has not learned'}"

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {**asdict(self), "learned": self.learned}


def run(device: DeviceName = "auto", attentions: Sequence[str] = ()) -> Iterator[Outcome]:
    """Train each of `attentions` (default: all) until it does the task, or for `MOST_STEPS`; each outcome as soon as it is there.

    Raises:
        ConfigError: there is no such attention, or no such device.
    """
    if unknown := [attention for attention in attentions if attention not in SYSTEMS]:
        raise ConfigError(f"--attention {unknown[0]}: not known; known are {', '.join(SYSTEMS)}")
    return _learn_each(attentions or tuple(SYSTEMS), set_up_device(device))


def header(device: DeviceName = "auto") -> str:
    """The versions and the device that are checked."""
    from nmt import __version__

    place = pick_device(device)
    where = torch.cuda.get_device_name(place) if place.type == "cuda" else f"{place}, {torch.get_num_threads()} threads"
    return (
        f"nmt {__version__}, torch {torch.__version__}, on {where}\n"
        f"{'attention':<16}{'longest':>8}{'exact match':>13}{'steps':>8}{'seconds':>10}{'tokens/s':>11}"
    )


def _learn_each(attentions: Sequence[str], device: torch.device) -> Iterator[Outcome]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model is slower on more
    try:
        for attention in attentions:
            yield _learn(attention, device)
    finally:
        torch.set_num_threads(threads)


def _learn(attention: str, device: torch.device) -> Outcome:
    config = _configure(attention)
    torch.manual_seed(config.seed)
    model = Seq2Seq(config.model, SYMBOLS.stop, SYMBOLS.stop).to(device)
    optimizer, random = build_optimizer(model, config.training), np.random.default_rng(config.seed)
    longest = LONGEST_REMEMBERED if config.model.attention.score in ("linear", "none") else LONGEST
    unseen = [_draw(random, length) for length in range(1, longest + 1) for _ in range(200 // longest)]
    begun, n_tokens, exact_match, step = time.monotonic(), 0, 0.0, 0
    while exact_match < 0.98 and step < MOST_STEPS:
        step += 1
        length = int(random.integers(1, longest + 1))
        sources = [_draw(random, length) for _ in range(config.training.batch.fixed_size)]
        batch = build_batch(sources, [_answer(source) for source in sources])
        train_step(model, optimizer, [batch], step, config, config.training.learning_rate.peak)
        n_tokens += batch.n_tokens
        if step % CHECK_EVERY == 0:
            exact_match = _exact_match(model, unseen)
    seconds = time.monotonic() - begun
    return Outcome(attention, longest, exact_match, step, seconds, n_tokens / seconds)


def _configure(attention: str) -> Config:
    return config_from_dict(
        {
            "name": "selftest",
            "data": {"source": {"path": "none"}},
            "model": {"embedding_size": 32, "encoder": {"hidden_size": 32}, "bridge": "zero", "dropout": 0.0, **SYSTEMS[attention]},
            "training": {"batch": {"size": 32}, "learning_rate": {"peak": 0.005}},
        }
    )


def _draw(random: np.random.Generator, length: int) -> list[int]:
    """A source: what to do, and `length` symbols."""
    return [int(random.choice([COPY, REVERSE])), *random.integers(SYMBOLS.start, SYMBOLS.stop, size=length).tolist()]


def _answer(source: Sequence[int]) -> list[int]:
    command, *symbols = source
    return symbols if command == COPY else symbols[::-1]


def _exact_match(model: Seq2Seq, sources: Sequence[list[int]]) -> float:
    model.eval()
    found = search(model, sources, DecodingConfig(beam=1))
    model.train()
    return float(np.mean([hypotheses[0].ids == _answer(source) for hypotheses, source in zip(found, sources, strict=True)]))

"""One round of one system: reads a job as JSON from standard input, writes its figures as JSON to
standard output.

    echo '{"system": "matmul", "threads": 2}' | python scripts/bench/worker.py

`bench_train.py` starts a new process for each round, so that rounds share no threads, memory or
caches.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from nmt.config.load import config_from_dict
from nmt.config.schema import Config
from nmt.data.batches import divide_epochs, plan_batches, read_batches, shard
from nmt.data.corpus import Corpus
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_vocabularies
from nmt.run.progress import Progress
from nmt.text.vocabulary import PAD
from nmt.training import loop
from nmt.training.loop import Training
from nmt.training.loss import Loss, draw_forcing_mask
from nmt.training.optimization import forcing_ratio
from scripts.bench import reference
from scripts.bench.counting import (
    Positions,
    computed,
    count_words,
    measure_costs,
    needed,
    padded,
    training_operations,
)
from scripts.bench.memory import peak_memory

PARTS = ("data", "forward", "backward", "update")
MATRIX_SIZE = 2048  # rows and columns of the matrix product that rates the machine
WARM_UP_UPDATES = 5  # before the measurement
ENDLESS = 10**9
NO_POSITIONS = Positions()

T = TypeVar("T")


@dataclass
class Meter:
    """Counts updates after the warm-up, and the time of each part of an update."""

    seconds: float
    updates: int = -WARM_UP_UPDATES
    start_time: float = 0.0
    end_time: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time of the `with` block to this part."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.parts[name] = self.parts.get(name, 0.0) + time.perf_counter() - start

    def updated(self) -> bool:
        """Count one update; True if it was the last one."""
        self.updates += 1
        now = time.perf_counter()
        if self.updates == 0:
            self.start_time, self.parts = now, {}
        self.end_time = now
        return self.updates > 0 and now - self.start_time >= self.seconds

    def shares(self) -> dict[str, float]:
        """The share of each part in the time; `update` is the rest: clipping, the optimizer, and
        all bookkeeping.
        """
        total = self.end_time - self.start_time
        shares = {name: self.parts.get(name, 0.0) / total for name in PARTS[:-1]}
        return {**shares, PARTS[-1]: 1 - sum(shares.values())}


def matmul_rate(seconds: float = 0.5) -> float:
    """Operations per second of a large float32 product: the best of several, during `seconds` and
    at least three.
    """
    left, right, out = (torch.rand(MATRIX_SIZE, MATRIX_SIZE) for _ in range(3))
    best, end = 0.0, time.perf_counter() + seconds
    for repetition in range(ENDLESS):
        start = time.perf_counter()
        torch.mm(left, right, out=out)
        now = time.perf_counter()
        if repetition:  # the first one is a warm-up
            best = max(best, 2 * MATRIX_SIZE**3 / (now - start))
        if repetition > 2 and now > end:
            break
    return best


@dataclass(frozen=True)
class Work:
    """The data of the measured updates: pairs, target tokens, and positions needed and computed."""

    pairs: tuple[int, ...] = ()
    tokens: int = 0
    needed: Positions = NO_POSITIONS
    computed: Positions = NO_POSITIONS

    def add(
        self, corpus: Corpus, indices: NDArray[np.int64], count: Callable[..., Positions]
    ) -> "Work":
        """This and one more batch; `count` gives its computed positions."""
        src, tgt = corpus.src.lengths[indices] + 1, corpus.tgt.lengths[indices] + 1  # <eos>
        pairs, tokens = (*self.pairs, *indices.tolist()), self.tokens + int(tgt.sum())
        return Work(pairs, tokens, self.needed + needed(src, tgt), self.computed + count(src, tgt))


class Silent(loop.Record):
    """Records nothing."""

    def validate(self, step: int) -> float:
        raise AssertionError(f"validated at step {step}")


def run_nmt(config: Config, corpus: Corpus, meter: Meter, epoch: int) -> Work:
    """Run the real loop, `nmt.training.loop.fit`; wrappers around the functions that it calls
    measure the time.
    """
    model = _build(Seq2Seq, config)
    training = Training.of(model, corpus, _endless(config))
    training.progress = Progress(epoch=epoch)
    with _timed_parts(meter):
        loop.fit(training, Silent(), meter.updated)
    work = Work()
    measured = islice(
        _updates(corpus, config, epoch), WARM_UP_UPDATES, WARM_UP_UPDATES + meter.updates
    )
    for step, indices in enumerate(measured, WARM_UP_UPDATES + 1):
        for index, pairs in enumerate(shard(indices, config.training.accumulate)):
            if len(pairs):
                sampled = _count_sampled(corpus, config, pairs, step, index)
                work = work.add(corpus, pairs, partial(computed, sampled=sampled))
    return work


def _count_sampled(
    corpus: Corpus, config: Config, pairs: NDArray[np.int64], step: int, index: int
) -> int:
    """The target positions of micro-batch `index` where the decoder was fed its own output."""
    forcing = config.training.teacher_forcing
    (batch,) = read_batches(corpus, [pairs])
    forcing_mask = draw_forcing_mask(
        batch, forcing_ratio(step, forcing), forcing.per, loop.reseed(config.seed, step, index)
    )
    return 0 if forcing_mask is None else int((~forcing_mask[:, 1:]).sum())


def _updates(corpus: Corpus, config: Config, epoch: int) -> Iterator[NDArray[np.int64]]:
    """The pairs of each update, in the loop's order."""
    for part in divide_epochs(len(corpus), range(epoch, ENDLESS), seed=config.seed):
        sentences = part.select(corpus)
        plan = plan_batches(
            sentences.src.lengths,
            sentences.tgt.lengths,
            config.training.batch,
            key=part.key(config.seed),
            n_shards=config.training.accumulate,
        )
        indices = part.indices()
        yield from (indices[batch] for batch in plan)


@contextmanager
def _timed_parts(meter: Meter) -> Iterator[None]:
    """Measure the time that the loop spends in each part."""

    def timed(part: str, function: Callable[..., T]) -> Callable[..., T]:
        def call(*args: Any, **kwargs: Any) -> T:
            with meter.part(part):
                return function(*args, **kwargs)

        return call

    def timed_reading(*args: Any, **kwargs: Any) -> Iterator[Any]:
        batches = read_batches(*args, **kwargs)
        while True:
            with meter.part("data"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    with (
        mock.patch.object(loop, "read_batches", timed_reading),
        mock.patch.object(Loss, "forward", timed("forward", Loss.forward)),
        mock.patch.object(torch.Tensor, "backward", timed("backward", torch.Tensor.backward)),
    ):
        yield


def run_reference(
    config: Config, corpus: Corpus, meter: Meter, epoch: int, batch_size: int
) -> Work:
    """The plain loop, with batches of `batch_size` pairs."""
    model = _build(reference.ReferenceModel, config)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.training.learning_rate.peak)
    model.train()
    work = Work()
    for indices in reference.plan(corpus, config, batch_size, epoch):
        with meter.part("data"):
            batch = reference.read(corpus, indices)
        with meter.part("forward"):
            logits = model(batch)
            loss = criterion(logits.flatten(0, 1), batch.tgt_out.flatten())
        with meter.part("backward"):
            optimizer.zero_grad()
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.training.clip_norm)
        optimizer.step()
        loss.item()
        last = meter.updated()
        if meter.updates > 0:
            work = work.add(corpus, indices, padded)
        if last:
            break
    return work


ModelT = TypeVar("ModelT", bound=nn.Module)


def _build(kind: Callable[..., ModelT], config: Config) -> ModelT:
    torch.manual_seed(config.seed)
    return kind(config.model, *map(len, load_vocabularies(config.prepared_folder)))


def _endless(config: Config) -> Config:
    """The same training without validations and without an end."""
    values = config.to_dict()
    values["training"] |= {
        "epochs": ENDLESS,
        "max_steps": None,
        "max_minutes": None,
        "validate_every": ENDLESS,
    }
    return config_from_dict(values)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The figures of one round.

    Args:
        job: system, threads; and, except for `matmul`, config (its values), seconds, round (from
            0), batch (of the plain loop).
    """
    torch.set_num_threads(job["threads"])
    before = matmul_rate()
    if job["system"] == "matmul":
        return {"matmul": before}
    config = config_from_dict(job["config"])
    corpus, meter = Corpus.load(config.prepared_folder, "train"), Meter(job["seconds"])
    if job["system"] == "nmt":
        work = run_nmt(config, corpus, meter, job["round"])
    else:
        work = run_reference(config, corpus, meter, job["round"], job["batch"])
    memory, seconds = peak_memory(), meter.end_time - meter.start_time
    after = matmul_rate()
    vocabulary_size = len(load_vocabularies(config.prepared_folder)[1])
    costs, words = (
        measure_costs(config.model, vocabulary_size),
        count_words(corpus, work.pairs, vocabulary_size),
    )
    return {
        "tokens_per_second": work.tokens / seconds,
        "tokens": work.tokens,
        "updates": meter.updates,
        "seconds": seconds,
        "computed": training_operations(costs, work.computed, words) / seconds,
        "needed": training_operations(costs, work.needed, words) / seconds,
        "matmul": (before + after) / 2,
        "matmul_before_after": [before, after],
        "peak_memory": memory,
        "shares": meter.shares(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))

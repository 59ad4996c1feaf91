"""One round of decoding: reads a job as JSON from standard input, writes its figures as JSON to
standard output.

`bench_decode.py` starts a new process for each round, so that rounds share no threads, memory or
caches.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import numpy as np
import torch
from torch import Tensor

from nmt.data.corpus import read_sentences
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import score
from nmt.model import output
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.interface import StepOutput
from nmt.model.output import ThresholdFn
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_run_config
from nmt.run.load import load_translator
from scripts.bench.counting import OPERATIONS, Positions, measure_costs, multiply_adds
from scripts.bench.memory import peak_memory
from scripts.bench.plain_search import translate_plainly
from scripts.bench.worker import NO_POSITIONS, matmul_rate

WARM_UP_SENTENCES = 64  # translated before the measurement

Translate = Callable[[Sequence[str]], list[Translation]]


@dataclass
class Count:
    """The positions that the model computed, padding included.

    Attributes:
        rows: number of words computed for a row: number of such rows.
    """

    positions: Positions = NO_POSITIONS
    rows: Counter[int] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)  # several threads search batches

    def add(self, positions: Positions, logits: Tensor | None = None) -> None:
        with self.lock:
            self.positions += positions
            if logits is not None:
                self.rows[logits.shape[1]] += len(logits)

    @property
    def n_logits(self) -> int:
        """The number of logits computed at all output positions."""
        return sum(n_words * n_rows for n_words, n_rows in self.rows.items())


@contextmanager
def counting() -> Iterator[Count]:
    """Count the calls of each part of a model."""
    count, log_norm = Count(), output.log_norm
    encode, step = Seq2Seq.encode, Seq2Seq.step
    compute_logits, topk_log_probs = Seq2Seq.compute_logits, Seq2Seq.topk_log_probs

    def counting_encode(self: Seq2Seq, src: Tensor, src_lengths: Tensor) -> Memory:
        count.add(Positions(len(src), int(src_lengths.sum()), src.numel()))
        return encode(self, src, src_lengths)

    def counting_step(
        self: Seq2Seq, ids: Tensor, state: DecoderState, memory: Memory
    ) -> StepOutput:
        count.add(Positions(decoder=len(ids), pairs=len(ids) * memory.mask.shape[1]))
        return step(self, ids, state, memory)

    def counting_logits(self: Seq2Seq, vectors: Tensor) -> Tensor:
        logits = compute_logits(self, vectors)
        count.add(Positions(output=len(vectors)), logits)
        return logits

    def counting_topk(
        self: Seq2Seq, vectors: Tensor, k: int, threshold: ThresholdFn
    ) -> tuple[Tensor, Tensor]:
        count.add(Positions(output=len(vectors)))
        return topk_log_probs(self, vectors, k, threshold)

    def counting_norm(logits: Tensor) -> Tensor:
        count.add(NO_POSITIONS, logits)
        return log_norm(logits)

    with (
        mock.patch.object(Seq2Seq, "encode", counting_encode),
        mock.patch.object(Seq2Seq, "step", counting_step),
        mock.patch.object(Seq2Seq, "compute_logits", counting_logits),
        mock.patch.object(Seq2Seq, "topk_log_probs", counting_topk),
        mock.patch.object(output, "log_norm", counting_norm),
    ):
        yield count


def operations(run: Path, count: Count, vocabulary_size: int) -> float:
    """The operations of all matrix products, in floating-point numbers or integers."""
    costs = measure_costs(load_run_config(run).model, vocabulary_size)
    words = np.zeros(vocabulary_size, np.int64)
    for first, end, _ in costs.clusters:
        words[first] = count.rows[end - first] + count.rows[vocabulary_size]
    parts = multiply_adds(costs, count.positions, words)
    share = (
        1 if costs.clusters else count.n_logits / max(1, count.positions.output * vocabulary_size)
    )  # below 1 with a shortlist
    return OPERATIONS * (sum(parts.values()) - parts["output"] * (1 - share))


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The figures of one round.

    Args:
        job: run, prepared, split, sentences, singles (number of sentences translated one at a
            time), threads, plain (use the plain search), overrides (of the configuration).
    """
    torch.set_num_threads(job["threads"])
    run, before = Path(job["run"]), matmul_rate()
    config = load_run_config(run)
    sources, references = (
        read_sentences(Path(job["prepared"]), job["split"], side)[: job["sentences"]]
        for side in ("src", "tgt")
    )
    translator = load_translator(run, device="cpu", overrides=job["overrides"])
    translate: Translate = plain(translator) if job["plain"] else translator.translate
    translate(sources[: 1 if job["plain"] else WARM_UP_SENTENCES])
    with counting() as count:
        start = time.perf_counter()
        translations = translate(sources)
        seconds = time.perf_counter() - start
    latencies = []
    for source in sources[: job["singles"]]:
        start = time.perf_counter()
        translate([source])
        latencies.append(time.perf_counter() - start)
    memory, after = peak_memory(), matmul_rate()
    tokens = sum(len(translation.tokens) + translation.complete for translation in translations)
    (bleu,) = score(
        [translation.text for translation in translations],
        [references],
        ["BLEU"],
        lowercase=config.tokenizer.lowercase,
    )
    return {
        "sentences_per_second": len(sources) / seconds,
        "tokens_per_second": tokens / seconds,
        "seconds": seconds,
        "length": tokens / len(sources),
        "latency": float(np.median(latencies)),
        "latency_99": float(np.percentile(latencies, 99)),
        "computed": operations(run, count, len(translator.tgt_vocabulary)) / seconds,
        "words_scored": count.n_logits / max(1, count.positions.output),
        "matmul": (before + after) / 2,
        "matmul_before_after": [before, after],
        "peak_memory": memory,
        "bleu": bleu.value,
    }


def plain(translator: Translator) -> Translate:
    """A function that translates with the plain search."""
    return lambda texts: [translate_plainly(translator, text) for text in texts]


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))

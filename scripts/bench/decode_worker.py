"""One round of decoding, in a process of its own: a job as JSON on standard input, its figures as JSON on standard output.

`bench_decode.py` starts it, so that threads, memory and whatever a library keeps are this round's alone.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import numpy as np
import torch
from torch import Tensor

from nmt.data.corpus import read_lines
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.metrics.scores import score
from nmt.model import output, topk
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.seq2seq import Seq2Seq
from nmt.model.topk import ThresholdFn
from nmt.model.translation_model import StepOutput
from nmt.run.folder import load_run_config
from nmt.run.load import load_translator
from scripts.bench.counting import OPERATIONS, Positions, cutoffs, multiply_adds
from scripts.bench.memory import peak_memory
from scripts.bench.plain_search import translate_plainly
from scripts.bench.worker import NOWHERE, matmul_rate

WARM_UP = 64  # sentences translated before measuring begins

Translate = Callable[[Sequence[str]], list[Translation]]


@dataclass
class Count:
    """The positions that the model was run at, with padding.

    Attributes:
        rows: how many were scored, by the number of words that each was scored for.
    """

    positions: Positions = NOWHERE
    rows: Counter[int] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)  # batches are searched side by side

    def add(self, positions: Positions, scores: Tensor | None = None) -> None:
        with self.lock:
            self.positions += positions
            if scores is not None:
                self.rows[scores.shape[1]] += len(scores)

    @property
    def scored(self) -> int:
        """Words at all output positions together."""
        return sum(n_words * n_rows for n_words, n_rows in self.rows.items())


@contextmanager
def counting() -> Iterator[Count]:
    """Within, what a model is asked for is counted."""
    count, norm = Count(), topk.log_norm
    encode, step, scores, likely = Seq2Seq.encode, Seq2Seq.step, Seq2Seq.compute_logits, Seq2Seq.topk_log_probs

    def encoding(self: Seq2Seq, src: Tensor, src_lengths: Tensor) -> Memory:
        count.add(Positions(len(src), int(src_lengths.sum()), src.numel()))
        return encode(self, src, src_lengths)

    def stepping(self: Seq2Seq, ids: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        count.add(Positions(decoder=len(ids), pairs=len(ids) * memory.mask.shape[1]))
        return step(self, ids, state, memory)

    def scoring(self: Seq2Seq, vectors: Tensor) -> Tensor:
        found = scores(self, vectors)
        count.add(Positions(output=len(vectors)), found)
        return found

    def finding(self: Seq2Seq, vectors: Tensor, k: int, threshold: ThresholdFn) -> tuple[Tensor, Tensor]:
        count.add(Positions(output=len(vectors)))
        return likely(self, vectors, k, threshold)

    def norming(scores: Tensor) -> Tensor:
        count.add(NOWHERE, scores)
        return norm(scores)

    with (
        mock.patch.object(Seq2Seq, "encode", encoding),
        mock.patch.object(Seq2Seq, "step", stepping),
        mock.patch.object(Seq2Seq, "compute_logits", scoring),
        mock.patch.object(Seq2Seq, "topk_log_probs", finding),
        mock.patch.object(topk, "log_norm", norming),
        mock.patch.object(output, "log_norm", norming),
    ):
        yield count


def operations(run: Path, count: Count, vocabulary_size: int) -> float:
    """Of the products, floating-point or not."""
    config = load_run_config(run).model
    if config.output == "adaptive":
        words = np.zeros(vocabulary_size, np.int64)
        for begin, end in pairwise(cutoffs(config, vocabulary_size)):
            words[begin] = count.rows[end - begin] + count.rows[vocabulary_size]
        return OPERATIONS * sum(multiply_adds(config, vocabulary_size, count.positions, words).values())
    parts = multiply_adds(config, vocabulary_size, count.positions)
    share = count.scored / max(1, count.positions.output * vocabulary_size)
    return OPERATIONS * (sum(parts.values()) - parts["output"] * (1 - share))


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The figures of one round.

    Args:
        job: run, split, sentences, singles (how many are translated one at a time), threads, plain (the step-by-step search),
            overrides (of the run's configuration).
    """
    torch.set_num_threads(job["threads"])
    run, before = Path(job["run"]), matmul_rate()
    config = load_run_config(run)
    sources, references = (read_lines(Path(job["prepared"]), job["split"], side)[: job["sentences"]] for side in ("src", "tgt"))
    translator = load_translator(run, device="cpu", overrides=job["overrides"])
    translate: Translate = plain(translator) if job["plain"] else translator.translate
    translate(sources[: 1 if job["plain"] else WARM_UP])
    with counting() as count:
        start = time.perf_counter()
        found = translate(sources)
        seconds = time.perf_counter() - start
    singles = []
    for source in sources[: job["singles"]]:
        start = time.perf_counter()
        translate([source])
        singles.append(time.perf_counter() - start)
    memory, after = peak_memory(), matmul_rate()
    tokens = sum(len(one.tokens) + one.complete for one in found)
    (bleu,) = score([one.text for one in found], [references], ["BLEU"], lowercase=config.tokenizer.lowercase)
    return {
        "sentences_per_second": len(sources) / seconds,
        "tokens_per_second": tokens / seconds,
        "seconds": seconds,
        "length": tokens / len(sources),
        "latency": float(np.median(singles)),
        "latency_99": float(np.percentile(singles, 99)),
        "computed": operations(run, count, len(translator.tgt_vocabulary)) / seconds,
        "words_scored": count.scored / max(1, count.positions.output),
        "matmul": (before + after) / 2,
        "matmul_before_after": [before, after],
        "peak_memory": memory,
        "bleu": bleu.value,
    }


def plain(translator: Translator) -> Translate:
    """The same model with the plain search."""
    return lambda texts: [translate_plainly(translator, text) for text in texts]


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))

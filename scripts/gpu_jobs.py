"""The measurements of scripts/check_gpu.py: each is a job that returns figures for JSON.

    python scripts/gpu_jobs.py JOB DEVICE [--small]

All data is random: sentence lengths like those of Tatoeba, ids without meaning. Speed does not
depend on the meaning.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from nmt.config.load import config_from_dict
from nmt.config.schema import Config, DecodingConfig, TrainingConfig
from nmt.data.batches import Batch, plan_batches, read_batches
from nmt.data.corpus import Corpus, Sequences
from nmt.decoding.fast import for_search
from nmt.decoding.search import search
from nmt.device import supports_mixed_precision
from nmt.errors import ConfigError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.progress import Update
from nmt.text.vocabulary import SPECIALS
from nmt.training.dry_run import find_batch_size
from nmt.training.loop import Training, train_step
from nmt.training.loss import Loss
from scripts.compare_systems import run_nmt

Figures = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
WARM_UP_UPDATES = 3  # before the measurement
PRECISIONS = ("float32", "tf32", "bfloat16")
LUONG: Mapping[str, Any] = {"kind": "luong", "input_feeding": False}
INPUT_FEEDING: Mapping[str, Any] = {"kind": "luong", "input_feeding": True}
BAHDANAU: Mapping[str, Any] = {"kind": "bahdanau", "readout": "state"}
# Kernels of cuBLAS, cuDNN and their code generators; on a CPU, the operators that call oneDNN or
# BLAS.
LIBRARY_KERNEL = re.compile(
    r"gemm|gemv|cutlass|cudnn|cublas|nvjet|xmma|RNN|LSTM|GRU|elemWiseRNN|splitK|aten::(mm|bmm|addmm|baddbmm|mkldnn_rnn)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Size:
    """How much to measure.

    Attributes:
        hidden, layers, words: of the large model. model_r: units of the decoder and words of the
            small one.
        pairs: of the corpus. batch, large_batch: pairs of an update. updates: measured ones of each
            model and precision.
        matrix: rows and columns of the products that rate the device.
        sentences: batch sizes of search.
        commands: updates of the training on the command line.
    """

    hidden: int = 1024
    layers: int = 4
    words: int = 32_000
    model_r: tuple[int, int] = (256, 17_423)
    pairs: int = 60_000
    batch: int = 64
    large_batch: int = 512
    updates: int = 40
    matrix: int = 8192
    sentences: tuple[int, ...] = (64, 512)
    commands: int = 300


FULL = Size()
SMALL = Size(
    hidden=32,
    layers=2,
    words=200,
    model_r=(32, 200),
    pairs=400,
    batch=8,
    large_batch=16,
    updates=3,
    matrix=256,
    sentences=(2, 4),
    commands=5,
)


def make_config(
    size: Size,
    *,
    large: bool,
    decoder: Mapping[str, Any] = LUONG,
    precision: str = "float32",
    dropout: float = 0.2,
) -> Config:
    """Model R of the benchmarks, or the large model."""
    hidden, layers = (size.hidden, size.layers) if large else (size.model_r[0], 1)
    attention = (
        {"score": "additive"}
        if decoder["kind"] == "bahdanau"
        else {"score": "general", "scaled": True}
    )
    return config_from_dict(
        {
            "name": "check-gpu",
            "data": {"source": {"path": "none"}},
            "model": {
                "embedding_size": hidden,
                "encoder": {"hidden_size": hidden // 2, "layers": layers},
                "attention": attention,
                "decoder": {"hidden_size": hidden, "layers": layers, **decoder},
                "dropout": dropout,
            },
            "training": {
                "precision": "bfloat16" if precision == "bfloat16" else "float32",
                "batch": {"size": size.large_batch if large else size.batch, "unit": "sentences"},
            },
        }
    )


def make_corpus(size: Size, words: int) -> Corpus:
    """Random pairs with lengths like those of Tatoeba: about 9 tokens, at most 60."""
    random = np.random.default_rng(1)
    lengths = np.clip(random.lognormal(2.1, 0.45, size.pairs), 1, 60).astype(np.int64)

    def make_side(lengths: NDArray[np.int64]) -> Sequences:
        ids = random.integers(len(SPECIALS), words, int(lengths.sum()), dtype=np.int32)
        return Sequences((ids, np.concatenate([[0], np.cumsum(lengths)])))

    return Corpus(
        make_side(lengths), make_side(np.maximum(1, lengths + random.integers(-2, 3, size.pairs)))
    )


def build(config: Config, words: int, device: torch.device) -> Seq2Seq:
    """The model with random weights, the same on each device."""
    torch.manual_seed(1)
    return Seq2Seq(config.model, words, words).to(device)


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def set_precision(precision: str) -> None:
    """Let the device multiply float32 matrices exactly, or as TF32."""
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    torch.backends.cudnn.allow_tf32 = precision != "float32"


def describe(device: torch.device, size: Size) -> Figures:
    """The device and its software; the speed of a large product of matrices, in operations per
    second, in each precision.
    """
    figures: Figures = {
        "torch": torch.__version__,
        "device": str(device),
        "cuda": torch.version.cuda,
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        figures |= {
            "name": properties.name,
            "memory": properties.total_memory,
            "cudnn": torch.backends.cudnn.version(),
        }
    return {
        **figures,
        "matrix": size.matrix,
        "rates": {name: matrix_rate(device, size.matrix, name) for name in PRECISIONS},
    }


def matrix_rate(device: torch.device, size: int, precision: str) -> float:
    """Operations per second of a product of two square matrices: the best of ten."""
    set_precision(precision)
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    left, right = (torch.rand(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for _ in range(12):  # the first two are a warm-up
        start = time.perf_counter()
        torch.mm(left, right)
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds[2:])


def run_tests(device: torch.device, _size: Size) -> Figures:
    """The tests that run on a GPU if there is one. Exits with an error if one of them fails."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/model/test_recurrent.py",
        "tests/training/test_loop.py",
        "-k",
        device.type,
    ]
    tests = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    closing_line = (
        tests.stdout.strip().splitlines() or tests.stderr.strip().splitlines() or ["no output"]
    )[-1]
    if tests.returncode != 0:
        sys.exit(f"pytest: {closing_line}")
    return {"pytest": closing_line}


def run_commands(device: torch.device, size: Size) -> Figures:
    """`nmt prepare`, `train` and `evaluate` with a model that has all that the configurations of
    Tatoeba have: BLEU on dev, and the minutes of the training.
    """
    keys = [
        "tokenizer.kind=bpe",
        "tokenizer.size=500",
        "model.decoder.kind=gnmt",
        "model.decoder.layers=2",
        "model.decoder.readout=deep",
        "model.lexical_words=1000",
        "training.precision=auto",
        f"training.max_steps={size.commands}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        options = [f"--set={key}" for key in (*keys, f"data.prepared={folder}/data")]
        config, on = ("-c", str(ROOT / "configs/sample.yaml")), ("--device", device.type)
        run_nmt("prepare", *config, *options)
        start = time.perf_counter()
        run_nmt("train", *config, "-o", run, *on, *options)
        minutes = (time.perf_counter() - start) / 60
        scores = json.loads(run_nmt("evaluate", run, *on, "--split", "dev", "--json"))["scores"]
    return {"bleu": scores[0]["score"], "minutes": minutes}


def measure_training(device: torch.device, size: Size, *, large: bool, precision: str) -> Figures:
    """The updates of the training loop: tokens per second, peak memory, and where
    the time goes.
    """
    set_precision(precision)
    words = size.words if large else size.model_r[1]
    config, corpus = make_config(size, large=large, precision=precision), make_corpus(size, words)
    model = build(config, words, device)
    training, loss = Training.of(model, corpus, config), Loss(model, config.training)
    plan = plan_batches(corpus.src.lengths, corpus.tgt.lengths, config.training.batch, key=(1, 0))
    n_updates = min(size.updates, len(plan) - WARM_UP_UPDATES)
    batches = [
        batch.to(device) for batch in read_batches(corpus, plan[: n_updates + WARM_UP_UPDATES])
    ]
    model.train()

    def update(steps: range) -> None:
        for step in steps:
            pairs = plan[step]
            train_step(
                loss, training, Update(step + 1, 0, 0, 0, 1, 1, pairs, [batches[step]]), 1e-4
            )

    measured = range(WARM_UP_UPDATES, n_updates + WARM_UP_UPDATES)
    update(range(WARM_UP_UPDATES))
    synchronize(device)
    start = time.perf_counter()
    update(measured)
    synchronize(device)
    seconds = time.perf_counter() - start

    pairs = plan[WARM_UP_UPDATES:][:n_updates]
    tokens = sum(int(corpus.tgt.lengths[batch].sum()) + len(batch) for batch in pairs)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "updates": n_updates,
        "ms_per_update": 1000 * seconds / n_updates,
        "tokens_per_second": tokens / seconds,
        "memory": torch.cuda.max_memory_allocated() if device.type == "cuda" else None,
        **profile_updates(device, lambda: update(measured[:5])),
    }


def profile_updates(device: torch.device, run: Callable[[], object]) -> Figures:
    """The share of the time in which kernels run, the share of the library's kernels in theirs, and
    the ten longest.
    """
    on_gpu = device.type == "cuda"
    synchronize(device)
    start = time.perf_counter()
    run()
    synchronize(device)
    seconds = time.perf_counter() - start
    with profile(
        activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]
    ) as profiler:
        run()
        synchronize(device)
    times = {
        event.key: (event.self_device_time_total if on_gpu else event.self_cpu_time_total) / 1e6
        for event in profiler.key_averages()
        if not on_gpu or "CUDA" in str(event.device_type)
    }
    total, library = (
        sum(times.values()),
        sum(value for name, value in times.items() if LIBRARY_KERNEL.search(name)),
    )
    longest = sorted(times.items(), key=lambda item: -item[1])[:10]
    return {
        "kernels_of_time": total / seconds,
        "library_of_kernels": library / total if total else None,
        "library_of_time": library / seconds,
        "longest_kernels": {name[:100]: value / total for name, value in longest},
    }


def measure_step_loop(
    device: torch.device, size: Size, *, decoder: Mapping[str, Any], form: str
) -> Figures:
    """A decoder that runs step by step, on a batch of one shape: milliseconds of a forward and
    backward pass.

    Args:
        form: eager or graph (one CUDA graph of both passes).
    """
    set_precision("tf32")
    words = size.model_r[1]
    config, corpus = make_config(size, large=False, decoder=decoder), make_corpus(size, words)
    model = build(config, words, device)
    model.train()
    (batch,) = (batch.to(device) for batch in read_batches(corpus, [np.arange(size.batch)]))

    loss = Loss(model, TrainingConfig(label_smoothing=0.1))

    def forward() -> Tensor:
        objective: Tensor = loss(batch)[0]
        return objective

    def run() -> None:
        model.zero_grad(set_to_none=False)
        forward().backward()

    start = time.perf_counter()
    run()
    run()
    synchronize(device)
    warm_up = time.perf_counter() - start
    once = capture(run) if form == "graph" else run
    synchronize(device)
    start = time.perf_counter()
    for _ in range(size.updates):
        once()
    synchronize(device)
    return {
        "ms": 1000 * (time.perf_counter() - start) / size.updates,
        "warm_up_seconds": warm_up,
        **profile_updates(device, once),
    }


def capture(run: Callable[[], None]) -> Callable[[], None]:
    """The work of `run` as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def measure_batch_size(device: torch.device, size: Size) -> Figures:
    """The batch size that a dry run finds for the large model, and the memory that it leaves."""
    if device.type != "cuda":
        raise ConfigError("only a GPU has a batch size that fits")
    config, corpus = make_config(size, large=True), make_corpus(size, size.words)
    model = build(config, size.words, device)
    start = time.perf_counter()
    tokens, fitting = find_batch_size(Training.of(model, corpus, config))
    peak, total = (
        torch.cuda.max_memory_allocated(),
        torch.cuda.get_device_properties(device).total_memory,
    )
    return {
        "tokens": tokens,
        "fitting": fitting,
        "seconds": time.perf_counter() - start,
        "memory_share": peak / total,
    }


def measure_decoding(device: torch.device, size: Size, *, large: bool) -> Figures:
    """Search with random weights, 10 source tokens and 20 target tokens for each sentence:
    sentences per second.
    """
    set_precision("tf32")
    words = size.words if large else size.model_r[1]
    random = np.random.default_rng(1)
    model = for_search(build(make_config(size, large=large), words, device).eval())
    figures: Figures = {}
    for n_sentences in size.sentences:
        sources = random.integers(len(SPECIALS), words, (n_sentences, 10)).tolist()
        for beam in (1, 5):
            options = DecodingConfig(beam=beam, min_length_ratio=2.0, max_length_ratio=1.0)
            search(model, sources[:2], options)
            synchronize(device)
            start = time.perf_counter()
            results = search(model, sources, options)
            synchronize(device)
            seconds, n_tokens = (
                time.perf_counter() - start,
                sum(len(hypotheses[0].ids) for hypotheses in results),
            )
            figures[f"batch {n_sentences}, beam {beam}"] = {
                "sentences_per_second": n_sentences / seconds,
                "tokens_per_second": n_tokens / seconds,
            }
    return figures


def compare_with_cpu(device: torch.device, size: Size) -> Figures:
    """The same weights and batch on the CPU in float64 and on the device: relative errors of loss
    and gradient, equal outputs.
    """
    words = size.model_r[1]
    corpus = make_corpus(size, words)
    sources = [corpus.src[index].tolist() for index in range(4 * size.sentences[0])]
    figures: Figures = {}
    for name, decoder in (
        ("luong", LUONG),
        ("input feeding", INPUT_FEEDING),
        ("bahdanau", BAHDANAU),
    ):
        config = make_config(size, large=False, decoder=decoder, dropout=0.0)
        (batch,) = read_batches(corpus, [np.arange(size.batch)])
        expected_loss, expected = gradient(
            build(config, words, torch.device("cpu")).double(), batch
        )
        figures[name] = {}
        for precision in PRECISIONS if supports_mixed_precision(device) else PRECISIONS[:-1]:
            set_precision(precision)
            loss, actual = gradient(
                build(config, words, device), batch.to(device), is_bfloat16=precision == "bfloat16"
            )
            figures[name][precision] = {
                "loss": abs(loss - expected_loss) / expected_loss,
                "gradient": float((actual - expected).norm() / expected.norm()),
            }
        set_precision("float32")
        options = DecodingConfig(beam=5, max_length_ratio=0.5)
        here, there = (
            search(for_search(build(config, words, place).eval()), sources, options)
            for place in (device, torch.device("cpu"))
        )
        equal = sum(
            first[0].ids == second[0].ids for first, second in zip(here, there, strict=True)
        )
        figures[name]["equal_translations"] = equal / len(sources)
    return figures


def gradient(model: Seq2Seq, batch: Batch, *, is_bfloat16: bool = False) -> tuple[float, Tensor]:
    """The loss of a batch and its gradient, as float64 on the CPU."""
    model.train()  # for cuDNN, which computes no gradient in evaluation mode
    with torch.autocast(batch.src.device.type, torch.bfloat16) if is_bfloat16 else nullcontext():
        loss, _ = Loss(model, TrainingConfig(label_smoothing=0.1))(batch)
    loss.backward()
    gradients = [
        parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None
    ]
    return float(loss.detach()), torch.cat([part.double().cpu() for part in gradients])


Job = Callable[[torch.device, Size], Figures]

# Most important first: if the time runs out, the last ones are missing. Each runs in a process of
# its own.
JOBS: dict[str, Job] = {
    "device": describe,
    "tests": run_tests,
    "commands": run_commands,
    "equality with the CPU": compare_with_cpu,
    **{
        f"training, {name}, {precision}": partial(
            measure_training, large=name == "large", precision=precision
        )
        for name in ("large", "model R")
        for precision in reversed(PRECISIONS)
    },
    **{
        f"step loop, {name}, {form}": partial(measure_step_loop, decoder=decoder, form=form)
        for form in ("eager", "graph")
        for name, decoder in (("input feeding", INPUT_FEEDING), ("bahdanau", BAHDANAU))
    },
    "decoding, large": partial(measure_decoding, large=True),
    "decoding, model R": partial(measure_decoding, large=False),
    "batch size": measure_batch_size,
}
NEED_GPU = ("graph", "batch size")  # jobs whose name ends so


def can_run(name: str, device: torch.device) -> bool:
    """Whether the device can run the job; without AVX-512, a CPU has no recurrent layers in
    bfloat16.
    """
    if device.type == "cuda":
        return True
    return not name.endswith(NEED_GPU) and (
        supports_mixed_precision(device) or not name.endswith("bfloat16")
    )


if __name__ == "__main__":
    figures = JOBS[sys.argv[1]](torch.device(sys.argv[2]), SMALL if "--small" in sys.argv else FULL)
    print(json.dumps(figures))

"""Check what only a GPU can show, and how fast a small model is there; writes one JSON file.

    python scripts/check_gpu.py [--small] [-o check-gpu.json]

- the tests that need a GPU;
- `nmt prepare`, `train` and `evaluate`, with all parts of a model for Tatoeba;
- translations, losses and gradients of the same weights, compared with those of the CPU;
- target tokens per second of training, and sentences per second of translation, with the model of
  scripts/peers/model-r.yaml and random sentences: speed does not depend on their meaning.

What fails ends the script; the figures until then are in the file. With --small, tiny sizes show
within three minutes of a CPU that the script works.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch

from nmt.config.load import load_config
from nmt.data.batches import read_batches
from nmt.data.corpus import Corpus
from nmt.run.load import load_translator
from nmt.run.weights import build_model
from nmt.training.loss import Loss
from scripts.bench import ROOT, train_nmt

SAMPLE, MODEL_R = ROOT / "configs/sample.yaml", ROOT / "scripts/peers/model-r.yaml"
TESTS = "tests/model/test_recurrent.py", "tests/training/test_loop.py"
OF_TATOEBA = (
    *("tokenizer.kind=bpe", "tokenizer.size=500", "model.lexical_words=1000"),
    *("model.decoder.kind=gnmt", "model.decoder.layers=2", "model.decoder.readout=deep"),
)
DECODERS = {
    "luong": (),
    "input feeding": ("model.decoder.input_feeding=true",),
    "bahdanau": (
        *("model.decoder.kind=bahdanau", "model.decoder.readout=state"),
        *("model.attention.score=additive", "model.attention.scaled=false"),
    ),
}


def run_tests(options: Any) -> Iterator[tuple[str, object]]:
    """The tests that run on a GPU if there is one."""
    yield "tests", run("pytest", "-q", *TESTS, "-k", options.device.type).splitlines()[-1]


def run_commands(options: Any) -> Iterator[tuple[str, object]]:
    """BLEU on the test split of the sample; the share of translations that the CPU makes, too."""
    data, folder = options.folder / "data", options.folder / "run"
    keys = *OF_TATOEBA, f"data.prepared={data}", f"training.max_steps={options.steps}"
    run("nmt", "prepare", "-c", SAMPLE, keys=keys)
    run("nmt", "train", "-c", SAMPLE, "-o", folder, "--device", options.device, keys=keys)
    yield "BLEU", json.loads(run("nmt", "evaluate", folder, "--json"))["scores"][0]["score"]
    words = "nmt", "translate", "--run", folder, "--file", data / "dev.src.txt", "--device"
    here, there = (run(*words, device).splitlines() for device in (options.device, "cpu"))
    equal = float(np.mean(np.array(here) == np.array(there)))
    yield "equal translations", equal
    assert equal >= 0.95, "too few translations are equal"


def compare_gradients(options: Any) -> Iterator[tuple[str, object]]:
    """Relative errors of the first loss and its gradient, for each decoder and precision."""
    for name, keys in DECODERS.items():
        fixed = f"data.prepared={options.folder}/data", "model.dropout=0", "model.lexical_bias=0"
        loss, exact = gradient([*fixed, *keys], torch.device("cpu"), "float64")
        for precision in (*options.precisions, "tf32"):  # the last one stays on, as in nmt
            found_loss, found = gradient([*fixed, *keys], options.device, precision)
            error = float((found - exact).norm() / exact.norm())
            yield f"loss, {name}, {precision}", abs(found_loss - loss) / loss
            yield f"gradient, {name}, {precision}", error
            assert precision != "float32" or error <= 1e-4, f"wrong gradient: {name}"


def gradient(
    keys: Sequence[str], device: torch.device, precision: str
) -> tuple[float, torch.Tensor]:
    """The loss of a batch with the first weights, and its gradient, in float64 on the CPU."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.manual_seed(1)
    config = load_config(SAMPLE, keys)
    model = build_model(config.prepared_folder, config).to(
        device, torch.float64 if precision == "float64" else torch.float32
    )
    (batch,) = read_batches(Corpus.load(config.prepared_folder, "train"), [np.arange(64)])
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        loss, _ = Loss(model, config.training)(batch.to(device))
    loss.backward()
    parts = [each.grad.flatten() for each in model.parameters() if each.grad is not None]
    return loss.item(), torch.cat([part.double().cpu() for part in parts])


def measure_speed(options: Any) -> Iterator[tuple[str, object]]:
    """Tokens per second of training, by precision; sentences per second, by batch and beam."""
    pairs, random = options.folder / "pairs.tsv", np.random.default_rng(1)
    lengths = np.clip(random.lognormal(2.1, 0.45, options.pairs), 1, 60)  # about 9, as of Tatoeba
    texts = [
        [" ".join(f"w{word}" for word in random.integers(options.words, size=n)) for _ in range(2)]
        for n in lengths.astype(int)
    ]
    pairs.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in texts), encoding="utf-8")
    options.set = [
        *(f"data.source.path={pairs}", f"data.prepared={options.folder}/random"),
        *("data.split.dev=20", "data.split.test=20"),
    ]
    run("nmt", "prepare", "-c", MODEL_R, keys=options.set)
    for precision in options.precisions:
        figures = train_nmt(0, precision, MODEL_R, options, options.folder)
        yield f"training, {precision}", figures["target tokens/s"]
    sources = [src for src, _ in texts[:512]]
    for batch, beam in ((64, 1), (64, 5), (512, 1), (512, 5)):
        keys = f"decoding.batch={batch}", f"decoding.beam={beam}", "decoding.min_length_ratio=1"
        translator = load_translator(options.folder / "nmt-float32-0", overrides=keys)
        translator.translate(sources[:batch])  # sets up
        start = time.perf_counter()
        translator.translate(sources)
        yield f"batch {batch}, beam {beam}", len(sources) / (time.perf_counter() - start)


def run(*words: object, keys: Sequence[str] = ()) -> str:
    """What a module of Python prints. Raises: SystemExit if it fails, with its last line."""
    command = [sys.executable, "-m", *map(str, words), *(f"--set={key}" for key in keys)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit((done.stdout + done.stderr).strip().splitlines()[-1])
    return done.stdout


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, also without a GPU")
    parser.add_argument("-o", "--output", type=Path, default=Path("check-gpu.json"))
    options = parser.parse_args()
    if not (options.small or torch.cuda.is_available()):
        parser.error("torch finds no GPU here; --small shows on a CPU that the script works")
    options.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options.precisions = ["float32"] + ["bfloat16"] * torch.cuda.is_available()
    options.steps, options.pairs, options.words = (
        (5, 2_000, 200) if options.small else (1_500, 60_000, 17_423)
    )
    options.seconds, options.threads = 20, torch.get_num_threads()  # of a training
    results: dict[str, object] = {"torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        for check in (run_tests, run_commands, compare_gradients, measure_speed):
            for name, figure in check(options):
                results[name] = figure
                print(f"{name:<36}{figure}", flush=True)
                options.output.write_text(f"{json.dumps(results, indent=2)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

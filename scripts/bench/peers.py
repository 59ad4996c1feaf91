"""Other toolkits: trains the same model on the same tokens with their command lines, and reads the
speed that they print.

Install each in its own virtual environment, since it may need other versions than nmt:

    python3.11 -m venv PEER && PEER/bin/pip install torch       # the build for the CPU

    # JoeyNMT 2.3.0; delete the line `"verbose": False,` in its builders.py, newer versions of torch
    reject it
    PEER/bin/pip install matplotlib seaborn pandas sacrebleu sentencepiece subword-nmt sacremoses
        pyyaml packaging regex tqdm \\ tabulate portalocker lazy-importer setuptools six wrapt
        joblib future tensorboard importlib-metadata
    PEER/bin/pip install --no-deps joeynmt==2.3.0

    # OpenNMT-py 3.5.1
    PEER/bin/pip install configargparse ctranslate2 flask waitress pyonmttok pyyaml sacrebleu
        rapidfuzz pyahocorasick tensorboard \\ spacy fasttext-wheel six
    PEER/bin/pip install --no-deps OpenNMT-py==3.5.1

To add a toolkit: write a function that makes its settings, and add a row to `PEERS`.
"""

import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from nmt.config.schema import Config, ModelConfig
from nmt.data.corpus import Corpus
from nmt.lines import write_lines
from nmt.text.vocabulary import SPECIALS, Vocabulary
from scripts.bench.memory import peak_memory

MAX_PAIRS = 20_000  # of the training data: more than any toolkit trains on in a few minutes
DEV_PAIRS = 10  # required, but not used
REPORT_EVERY = 10  # updates
START_UP_SECONDS = 300  # before the first report
SPACE_MARK = "␣"  # replaces a space within a token
ENDLESS = 10**8

Values = dict[str, Any]


class PeerError(Exception):
    """A toolkit cannot be measured; the text gives the reason."""


@dataclass(frozen=True)
class Peer:
    """A toolkit.

    Attributes:
        title: its name. module: the module to import, to check that it is installed.
        command: its training command, between the interpreter and the configuration file.
        settings: makes its configuration from ours, a folder for its files, and a seed.
        speed: finds the target tokens per second in a printed line.
        warm_up: number of reports before the measurement.
        scores: our attention scores that it has, with its names for them.
        sizes_tied: encoder and decoder states must have the same size.
    """

    title: str
    module: str
    command: tuple[str, ...]
    settings: Callable[[Config, Path, int], Values]
    speed: re.Pattern[str]
    warm_up: int
    scores: Mapping[str, str]
    sizes_tied: bool

    def unsupported_keys(self, config: ModelConfig) -> list[str]:
        """The configuration keys of a model that this toolkit does not support; empty if it can be
        compared.
        """
        decoder, attention, encoder = config.decoder, config.attention, config.encoder
        checks = {
            "model.decoder.kind": decoder.kind != "luong",
            "model.decoder.readout": decoder.readout != "attentional",
            "model.decoder.readout_size": decoder.readout_size not in (None, decoder.hidden_size),
            "model.attention.score": attention.score not in self.scores,
            "model.attention.kind": attention.kind != "global",
            "model.attention.heads": attention.heads != 1,
            "model.encoder.cell": encoder.cell not in ("lstm", "gru")
            or encoder.cell != decoder.cell,
            "model.encoder.bidirectional": not encoder.bidirectional,
            "model.encoder.layers": encoder.layers != decoder.layers,
            "model.encoder.residual": encoder.residual or decoder.residual,
            "model.encoder.layer_norm": encoder.layer_norm or decoder.layer_norm,
            "model.encoder.hidden_size": self.sizes_tied
            and encoder.output_size != decoder.hidden_size,
            "model.tie_embeddings": config.tie_embeddings != "none",
            "model.output": config.output != "softmax",
        }
        return [key for key, is_unsupported in checks.items() if is_unsupported]


def _joeynmt_settings(config: Config, folder: Path, seed: int) -> Values:
    model, training = config.model, config.training
    embeddings = {"embedding_dim": model.embedding_size, "scale": False}
    shared = {
        "type": "recurrent",
        "rnn_type": model.encoder.cell,
        "embeddings": embeddings,
        "dropout": model.dropout,
    }
    side = {
        "level": "word",
        "lowercase": False,
        "max_length": 1000,
        "tokenizer_cfg": {"pretokenizer": "none"},
    }
    return {
        "name": config.name,
        "model_dir": str(folder / "joeynmt"),
        "use_cuda": False,
        "num_workers": 0,
        "random_seed": seed,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "test": str(folder / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "src", "voc_file": str(folder / "src.tokens"), **side},
            "trg": {"lang": "tgt", "voc_file": str(folder / "tgt.tokens"), **side},
        },
        "testing": {
            "beam_size": 1,
            "batch_size": 32,
            "batch_type": "sentence",
            "eval_metrics": ["bleu"],
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": training.learning_rate.peak,
            "learning_rate_min": 1e-8,
            "scheduling": "plateau",  # changes at validations, of which there are none
            "patience": 100,
            "clip_grad_norm": training.clip_norm,
            "label_smoothing": training.label_smoothing,
            "loss": "crossentropy",
            "normalization": "tokens",
            "batch_size": training.batch.size,
            "batch_type": "sentence" if training.batch.unit == "sentences" else "token",
            "epochs": ENDLESS,
            "validation_freq": ENDLESS,
            "logging_freq": REPORT_EVERY,
            "early_stopping_metric": "loss",
            "overwrite": True,
            "shuffle": True,
        },
        "model": {
            "encoder": {
                **shared,
                "hidden_size": model.encoder.hidden_size,
                "bidirectional": True,
                "num_layers": model.encoder.layers,
            },
            "decoder": {
                **shared,
                "hidden_size": model.decoder.hidden_size,
                "hidden_dropout": model.dropout,
                "num_layers": model.decoder.layers,
                "input_feeding": model.decoder.input_feeding,
                "init_hidden": "bridge",
                "attention": PEERS["joeynmt"].scores[model.attention.score],
            },
        },
    }


def _opennmt_settings(config: Config, folder: Path, seed: int) -> Values:
    model, training = config.model, config.training
    return {
        "data": {
            "corpus": {"path_src": str(folder / "train.src"), "path_tgt": str(folder / "train.tgt")}
        },
        "src_vocab": str(folder / "src.tokens"),
        "tgt_vocab": str(folder / "tgt.tokens"),
        "src_vocab_size": ENDLESS,
        "tgt_vocab_size": ENDLESS,
        "save_model": str(folder / "opennmt"),
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": model.encoder.cell.upper(),
        "layers": model.encoder.layers,
        "word_vec_size": model.embedding_size,
        "hidden_size": model.decoder.hidden_size,
        "input_feed": int(model.decoder.input_feeding),
        "global_attention": PEERS["opennmt"].scores[model.attention.score],
        "dropout": [model.dropout],
        "attention_dropout": [0.0],
        "optim": "adam",
        "learning_rate": training.learning_rate.peak,
        "start_decay_steps": ENDLESS,
        "max_grad_norm": training.clip_norm,
        "label_smoothing": training.label_smoothing,
        "batch_type": "sents" if training.batch.unit == "sentences" else "tokens",
        "batch_size": training.batch.size,
        "bucket_size": MAX_PAIRS,  # all of the data, sorted by length
        "normalization": "tokens",
        "num_workers": 0,
        "seed": seed,
        "report_every": REPORT_EVERY,
        "train_steps": ENDLESS,
        "save_checkpoint_steps": ENDLESS,
        "valid_steps": ENDLESS,
    }


PEERS = {
    "joeynmt": Peer(
        title="JoeyNMT",
        module="joeynmt.training",
        command=("-m", "joeynmt", "train"),
        settings=_joeynmt_settings,
        speed=re.compile(r"Tokens per Sec:\s*([\d.]+)"),
        warm_up=2,
        scores={"general": "luong", "additive": "bahdanau"},
        sizes_tied=False,
    ),
    "opennmt": Peer(
        title="OpenNMT-py",
        module="onmt.bin.train",
        command=("-m", "onmt.bin.train", "-config"),
        settings=_opennmt_settings,
        speed=re.compile(r"[\d.]+/\s*([\d.]+) tok/s"),
        warm_up=5,
        scores={"dot": "dot", "general": "general", "additive": "mlp"},
        sizes_tied=True,
    ),
}


def find(name: str, interpreters: Mapping[str, Path]) -> Path:
    """The Python interpreter of a toolkit: the given one, or else this one.

    Raises:
        PeerError: the toolkit is not installed there.
    """
    peer, python = PEERS[name], interpreters.get(name, Path(sys.executable))
    hint = (
        f"--peer-python {name}=/path/to/environment/bin/python gives the Python of its environment"
    )
    try:
        result = subprocess.run(
            [python, "-c", f"import {peer.module}"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise PeerError(f"{peer.title} not installed: {python}: {error.strerror}; {hint}") from None
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["cannot be imported"])[-1]
        raise PeerError(f"{peer.title} not installed in {python} ({reason}); {hint}")
    return python


def write_data(config: Config, folder: Path) -> None:
    """Write random pairs of the training data, as tokens separated by spaces, and the vocabularies:
    the input of all toolkits.
    """
    prepared = config.prepared_folder
    corpus = Corpus.load(prepared, "train")
    sample = np.random.default_rng(config.seed).permutation(len(corpus))[:MAX_PAIRS]
    for side, sequences in (("src", corpus.src), ("tgt", corpus.tgt)):
        tokens = read_tokens(prepared, side)
        lines = [to_line(sequences[index], tokens) for index in sample]
        write_lines(folder / f"train.{side}", lines)
        write_lines(folder / f"dev.{side}", lines[:DEV_PAIRS])
        write_lines(folder / f"{side}.tokens", tokens[len(SPECIALS) :])


def read_tokens(prepared: Path, side: str) -> list[str]:
    """The vocabulary of a prepared folder, without spaces within tokens."""
    return [
        token.replace(" ", SPACE_MARK) for token in Vocabulary.load(prepared / f"{side}.vocab.txt")
    ]


def to_line(ids: Iterable[int], tokens: Sequence[str]) -> str:
    """A sentence as tokens separated by spaces."""
    return " ".join(tokens[index] for index in ids)


def run(
    name: str,
    python: Path,
    config: Config,
    folder: Path,
    *,
    seconds: float,
    seed: int,
    environment: Mapping[str, str],
) -> Values:
    """One round in a new process: its speed and its peak memory.

    Args:
        folder: with the data of `write_data`.

    Raises:
        PeerError: it failed, or reported nothing in time.
    """
    peer, file = PEERS[name], folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(peer.settings(config, folder, seed)), encoding="utf-8")
    process = subprocess.Popen(
        [python, *peer.command, file],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env=dict(environment),
        cwd=folder,
    )
    watchdog = threading.Timer(START_UP_SECONDS + 10 * seconds, process.kill)
    watchdog.start()
    try:
        return _follow(process, peer, seconds)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _follow(process: "subprocess.Popen[str]", peer: Peer, seconds: float) -> Values:
    """Read its output until the reports cover `seconds`; the mean of the speeds, weighted by the
    time of each report.
    """
    last: deque[str] = deque(maxlen=5)
    reports, tokens, start, before = 0, 0.0, 0.0, 0.0
    assert process.stdout is not None
    for line in process.stdout:
        last.append(line.strip())
        match = peer.speed.search(line)
        if match is None:
            continue
        now = time.perf_counter()
        reports += 1
        if reports <= peer.warm_up:
            start = before = now
            continue
        tokens += float(match[1]) * (now - before)
        before = now
        if now - start >= seconds:
            figures: Values = {
                "tokens_per_second": tokens / (now - start),
                "tokens": round(tokens),
                "updates": REPORT_EVERY * (reports - peer.warm_up),
                "seconds": now - start,
                "peak_memory": peak_memory(process.pid),
            }
            return figures
    raise PeerError(
        f"{peer.title} ended before it had reported enough; its last lines:\n  " + "\n  ".join(last)
    )

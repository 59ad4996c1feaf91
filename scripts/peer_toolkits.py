"""Other toolkits for scripts/bench.py: the same model on the same tokens, with their own commands.

Install each in its own virtual environment, since it may need other versions than nmt:

    python3.11 -m venv PEER && PEER/bin/pip install torch       # the build for the CPU

    # JoeyNMT 2.3.0; delete the line `"verbose": False,` in its builders.py: new torch rejects it
    PEER/bin/pip install matplotlib seaborn pandas sacrebleu sentencepiece subword-nmt \\
        sacremoses pyyaml packaging regex tqdm tabulate portalocker lazy-importer setuptools six \\
        wrapt joblib future tensorboard importlib-metadata
    PEER/bin/pip install --no-deps joeynmt==2.3.0

    # OpenNMT-py 3.5.1
    PEER/bin/pip install configargparse ctranslate2 flask waitress pyonmttok pyyaml sacrebleu \\
        rapidfuzz pyahocorasick tensorboard spacy fasttext-wheel six
    PEER/bin/pip install --no-deps OpenNMT-py==3.5.1

    # CTranslate2, for scripts/bench.py decode: where nmt is, since it uses the tokenizers of nmt
    pip install ctranslate2==4.8.5

To add a toolkit that trains: its settings in scripts/peers/, and a row of `PEERS` and `MODULES`.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.config.schema import Config, ModelConfig
from nmt.data.corpus import Corpus
from nmt.errors import NmtError
from nmt.lines import write_lines
from nmt.text.vocabulary import SPECIALS, Vocabulary

FOLDER = Path(__file__).resolve().parent / "peers"
MAX_PAIRS = 20_000  # of the training data: more than any toolkit trains on in a few minutes
SPACE_MARK = "␣"  # replaces a space within a token
ENDLESS = 10**8


class PeerError(NmtError):
    """A toolkit cannot be measured; the text gives the reason."""


@dataclass(frozen=True)
class Peer:
    """A toolkit.

    Attributes:
        train: its command, in the folder of its settings.
        speed: finds the target tokens per second in a printed line.
        warm_up: number of such lines before the measurement.
    """

    train: str
    speed: re.Pattern[str]
    warm_up: int


PEERS = {
    "joeynmt": Peer("-m joeynmt train settings.yaml", re.compile(r"Tokens per Sec:\s*([\d.]+)"), 2),
    "opennmt": Peer(
        "-m onmt.bin.train -config settings.yaml", re.compile(r"[\d.]+/\s*([\d.]+) tok/s"), 5
    ),
}
MODULES = {  # of each system, to import
    "joeynmt": "joeynmt.training",
    "opennmt": "onmt.bin.train",
    "ctranslate2": "ctranslate2",
}


def unsupported_keys(model: ModelConfig) -> list[str]:
    """The keys with which the other systems cannot train the same model."""
    encoder, decoder, attention = model.encoder, model.decoder, model.attention
    checks = {
        "model.decoder.kind": decoder.kind != "luong",
        "model.decoder.readout": decoder.readout != "attentional",
        "model.attention.score": attention.score != "general",
        "model.attention.kind": attention.kind != "global",
        "model.encoder.cell": encoder.cell not in ("lstm", "gru") or encoder.cell != decoder.cell,
        "model.encoder.layers": encoder.layers != decoder.layers,
        "model.encoder.hidden_size": encoder.output_size != decoder.hidden_size,
        "model.encoder.layer_norm": encoder.layer_norm or decoder.layer_norm,
        "model.tie_embeddings": model.tie_embeddings != "none",
        "model.lexical_bias": model.lexical_bias != 0,
    }
    return [key for key, is_unsupported in checks.items() if is_unsupported]


def check_installed(name: str, python: Path) -> None:
    """Raises: PeerError: the toolkit is not installed for this Python."""
    code = f"import {MODULES[name]}"
    try:
        result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        reason = (result.stderr.strip().splitlines() or [""])[-1]
    except OSError as error:
        result, reason = None, error.strerror or str(error)
    if result is None or result.returncode:
        hint = f"--peer-python {name}=/path/to/its/environment/bin/python"
        raise PeerError(f"not installed for {python} ({reason}); {hint}")


def write_settings(name: str, config: Config, folder: Path, seed: int) -> None:
    """Fill in scripts/peers/NAME.yaml, as settings.yaml."""
    model, training = config.model, config.training
    by_sentences = training.batch.unit == "sentences"
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    filled = text.format(
        folder=folder,
        seed=seed,
        cell=model.encoder.cell,
        cell_upper=model.encoder.cell.upper(),
        layers=model.encoder.layers,
        embedding=model.embedding_size,
        encoder=model.encoder.hidden_size,
        decoder=model.decoder.hidden_size,
        feeding=str(model.decoder.input_feeding).lower(),
        feeding_number=int(model.decoder.input_feeding),
        dropout=model.dropout,
        peak=training.learning_rate.peak,
        clip_norm=training.clip_norm,
        label_smoothing=training.label_smoothing,
        batch=training.batch.size,
        unit="sentence" if by_sentences else "token",
        unit_short="sents" if by_sentences else "tokens",
    )
    (folder / "settings.yaml").write_text(filled, encoding="utf-8")


def write_data(config: Config, folder: Path, n_pairs: int | None = MAX_PAIRS) -> None:
    """Write random training pairs, as tokens separated by spaces, and the vocabularies."""
    folder.mkdir(parents=True, exist_ok=True)
    train = Corpus.load(config.prepared_folder, "train")
    sample = np.random.default_rng(config.seed).permutation(len(train))[:n_pairs]
    for side in ("src", "tgt"):
        vocabulary = Vocabulary.load(config.prepared_folder / f"{side}.vocab.txt")
        tokens = [token.replace(" ", SPACE_MARK) for token in vocabulary]
        pairs = getattr(train, side)
        lines = [" ".join(tokens[index] for index in pairs[row]) for row in sample]
        write_lines(folder / f"train.{side}", lines)
        write_lines(folder / f"dev.{side}", lines[:10])  # required, but not used
        write_lines(folder / f"{side}.tokens", tokens[len(SPECIALS) :])

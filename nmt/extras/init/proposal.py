"""The configuration that `nmt init` proposes: with sizes that suit the data, or those of a run."""

from math import inf
from pathlib import Path
from typing import Any

from nmt.config.schema import Config
from nmt.data.formats import Languages
from nmt.data.manifest import load_manifest
from nmt.data.reading import DUPLICATE
from nmt.errors import DataError
from nmt.extras.init.measurement import Measures
from nmt.run.folder import (
    find_checkpoint,
    find_run,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
)

MIN_PAIRS, MIN_FINE_TUNING = 200, 40
# Characters of the training data for each subword, so that the data has most of them often enough.
CHARACTERS_PER_SUBWORD = 50
MIN_NEW = 3  # times that the pairs must have a token for it to enter the vocabulary
# Of fine-tuning for a user's own pairs alone, for a number of these up to the first value: the
# share of general pairs beside them, passes over the own ones; docs/experiments.md has scores.
MIXTURES = ((5_000, 0.7, 25), (12_000, 0.5, 25), (inf, 0.1, 45))
# The same of an adaptation: few pairs are soon known, and leave more room for general ones.
ADAPTED = ((5_000, 0.9, 5), (inf, 0.8, 10))
MIN_STEPS, MAX_STEPS = 200, 10_000
MANY = 50_000  # own pairs up to which much dropout helps
DROPOUT = {"dropout": 0.5, "src_embedding_dropout": 0.3, "encoder_output_dropout": 0.4}

# For a number of pairs up to the first value: size of the embeddings and of each direction of the
# encoder; size of the decoder's layers; whether the output layer has the weights of the target
# embedding; subwords; batch size; updates; dropout of the units, the source embedding and the
# encoder output. The third is configs/tatoeba.yaml; docs/experiments.md has scores of the others.
SIZES = (
    (5_000, 128, 192, True, 1000, 32, 4000, (0.5, 0.3, 0.4)),
    (50_000, 192, 256, True, 3000, 64, 8000, (0.5, 0.3, 0.4)),
    (300_000, 256, 384, False, 5000, 96, 11000, (0.3, 0.2, 0.2)),
    (inf, 384, 512, False, 16000, 128, 20000, (0.2, 0.1, 0.1)),
)


def propose(name: str, direction: str, source: dict[str, Any], found: Measures) -> dict[str, Any]:
    """The keys and values of a configuration for this data.

    Raises:
        DataError: there are too few pairs.
    """
    check_number(found, MIN_PAIRS, "training")
    _, embedding, decoder, tied, subwords, batch, steps, dropout = next(
        sizes for sizes in SIZES if found.n_pairs <= sizes[0]
    )
    # Many, for the characters of Chinese, but only as many as occur often; and each character.
    most = max(subwords, 2 * found.n_different)
    size = max(min(most, found.n_characters // CHARACTERS_PER_SUBWORD), found.n_different + 50)
    return {
        "name": name,
        "data": {
            "direction": direction,
            "source": source,
            "split": {"dev": found.n_held_out, "test": found.n_held_out},
            **_cleaning(found, {}),
        },
        "tokenizer": {"kind": "unigram" if any(found.has_no_spaces) else "bpe", "size": size},
        "model": {
            **_network(embedding, decoder, tied),
            "lexical_bias": 20,
            # A word is what stands between spaces.
            "lexical_words": 0 if found.has_no_spaces[0] else 40000,
            "dropout": dropout[0],
            "src_embedding_dropout": dropout[1],
            "tgt_embedding_dropout": 0.1,
            "encoder_output_dropout": dropout[2],
        },
        "training": {
            "epochs": 100,
            "max_steps": steps,
            "batch": {"size": batch},
            "optimizer": "adam",
            "learning_rate": {
                "peak": 0.004,
                "schedule": "linear",
                "warmup_steps": 200,
                "steps": None,
            },
            "weight_decay": 0.00001,
            "label_smoothing": 0.1,
            "validate_every": 0.2,
            "validation_pairs": min(1000, found.n_held_out),
            "precision": "auto",
        },
        "decoding": {"beam": 5},
    }


def _cleaning(found: Measures, given: dict[str, Any]) -> dict[str, Any]:
    """`data.cleaning` where there is any: what is given, and to drop what was found."""
    cleaning = given | dict.fromkeys(found.suspicious, "drop")
    return {"cleaning": cleaning} if cleaning else {}


def _network(embedding: int, decoder: int, tied: bool) -> dict[str, Any]:
    """The parts of the model. embedding, decoder: sizes."""
    return {
        "embedding_size": embedding,
        "encoder": {"cell": "lstm", "hidden_size": embedding, "layers": 1, "bidirectional": True},
        "attention": {"score": "general", "scaled": True},
        "decoder": {
            "kind": "gnmt",
            "cell": "lstm",
            "hidden_size": decoder,
            "layers": 2,
            "readout": "deep",
            "readout_size": embedding if tied else decoder,
        },
        "tie_embeddings": "target" if tied else "none",
    }


def propose_specialist(
    name: str,
    source: dict[str, Any],
    found: Measures,
    run: str,
    config: Config,
    general: Path | None,
) -> dict[str, Any]:
    """As `propose_fine_tuning`, for a model of this kind of text alone."""
    _, mix, passes = next(mixture for mixture in MIXTURES if found.n_pairs <= mixture[0])
    values = propose_fine_tuning(name, source, found, run, config, general, mix, passes)
    values["data"] |= _cleaning(found, values["data"].get("cleaning", {}))
    training = values["training"]
    steps = min(MAX_STEPS, training["max_steps"])
    training |= {"max_steps": steps, "validate_every": 0.2}
    training["learning_rate"] |= {
        "peak": config.training.learning_rate.peak,
        "warmup_steps": min(200, steps // 4),
    }
    if found.n_pairs <= MANY:
        values["model"] = values.get("model", {}) | DROPOUT
    return values


def propose_fine_tuning(
    name: str,
    source: dict[str, Any],
    found: Measures,
    run: str,
    config: Config,
    general: Path | None,
    mix: float,
    passes: int,
) -> dict[str, Any]:
    """The configuration of a run with a user's own pairs, which starts from the weights of another.

    Args:
        source: of these pairs. run: its folder, as the configuration has it. config: of the run.
        general: a folder of prepared pairs, of which the model must not forget how to translate
            them; None: there are none. mix: their share of the training pairs. passes: over the
            user's own pairs.

    Raises:
        DataError: there are too few pairs.
    """
    check_number(found, MIN_FINE_TUNING, "fine-tuning")
    batch = config.training.batch
    n_sentences = batch.size if batch.unit == "sentences" else max(1, batch.size // 25)
    values = config.model_dump(mode="json", exclude_defaults=True)
    data, n_copies = _mixture(source, found, general, mix)
    if general is not None:
        n_sentences = max(1, round(n_sentences * (1 - mix)))
    steps = max(MIN_STEPS, passes * found.n_pairs // n_sentences)
    cleaning = {key: value for key, value in values["data"].items() if key == "cleaning"}
    kept = {
        key: value
        for key, value in values["training"].items()
        if key not in ("max_minutes", "final_pairs", "patience")
    }
    if config.training.precision == "bfloat16":
        kept["precision"] = "auto"  # it may be slower here
    return {
        **values,
        "name": name,
        "data": {"direction": config.data.direction, **data, **cleaning},
        "vocabulary": values.get("vocabulary", {})
        | {"like": run, "extend": round(MIN_NEW * n_copies)},
        "training": {
            **kept,
            "start_from": run,
            "epochs": 10_000,
            "max_steps": steps,
            "learning_rate": {
                "peak": float(f"{config.training.learning_rate.peak / 4:.2g}"),
                "schedule": "linear",
                "warmup_steps": 50,
                "steps": None,
            },
            "validate_every": 0.25,
            "validation_pairs": min(1000, found.n_held_out),
        },
    }


def _mixture(
    source: dict[str, Any], found: Measures, general: Path | None, mix: float
) -> tuple[dict[str, Any], float]:
    """The sources and the split of the data, and the copies of a user's pair in training data."""
    split = {"dev": found.n_held_out, "test": found.n_held_out}
    if general is None:
        return {"source": source, "split": split}, 1.0
    sources = {
        # First, so that none of its pairs is held out, as what the run was trained on.
        "general": {"format": "prepared", "path": str(general), "share": mix},
        "memory": {**source, "share": round(1 - mix, 6)},
    }
    n_general = load_manifest(general)["splits"]["train"]["pairs"]
    n_copies = (1 - mix) * (found.n_pairs + n_general) / found.n_pairs
    return {"sources": sources, "split": {**split, "source": "memory"}}, n_copies


def load_run_to_fine_tune(folder: Path, wanted: Languages | None) -> Config:
    """The configuration of a run that has all that a training needs to start from it.

    Args:
        wanted: source and target language, if the user names them.

    Raises:
        NmtError: there is no run, a file of it is missing or damaged, or it has other languages.
    """
    run = find_run(folder)
    config = load_run_config(run)
    if wanted is not None and wanted != (config.data.src_language, config.data.tgt_language):
        raise DataError(
            f"{run}: translates {config.data.direction}, so it cannot be fine-tuned for "
            f"{'-'.join(wanted)}; leave out --direction, or name another run"
        )
    find_checkpoint(run)
    load_tokenizers(run, config)
    load_vocabularies(run)
    return config


def check_number(found: Measures, n_needed: int, purpose: str) -> None:
    """Raises: DataError if there are fewer pairs than a purpose needs."""
    if found.n_pairs < n_needed:
        plural = "s" * (found.n_pairs != 1)
        different = " different" if found.dropped[DUPLICATE] else ""
        raise DataError(
            f"{found.name}: has {found.n_pairs}{different} pair{plural}; {purpose} needs at least "
            f"{n_needed}, and better some thousands"
        )

"""The settings of an exported run, and what cannot be exported."""

from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.config.schema import Config
from nmt.decoding.translator import WordlessLines
from nmt.errors import ConfigError
from nmt.extras.export import translate
from nmt.run.folder import load_vocabularies
from nmt.text.tokenizers import SIDES, load_tokenizer

DECODING_KEYS = (
    "beam",
    "length_formula",
    "length_penalty",
    "min_length_ratio",
    "max_length_ratio",
    "forbid_unknown",
    "batch",
    "max_source_tokens",
    "replace_unknown",
)
NOT_EXPORTED = {  # key of decoding -> its only value
    "method": "beam",
    "coverage_penalty": 0.0,
    "no_repeat_ngram": None,
    "neighbors.pairs": 0,
    "rerank.run": None,
}


def settings_of(run: Path, config: Config) -> dict[str, Any]:
    """The contents of settings.json.

    Raises:
        ConfigError: the exported translator would find other translations.
        DataError: vocabularies or tokenizers of the run are missing or damaged.
    """
    if config.tokenizer.kind not in translate.TOKENIZERS:
        raise ConfigError(f"tokenizer.kind: {config.tokenizer.kind} cannot be exported")
    for key, only in NOT_EXPORTED.items():
        value: Any = config.decoding
        for name in key.split("."):
            value = getattr(value, name, only)  # a key of an extra that is not there
        if value != only:
            setting = f"decoding.{key}={'null' if only is None else only}"
            raise ConfigError(f"decoding.{key}: {value} cannot be exported; add --set {setting}")
    languages = (config.data.src_language, config.data.tgt_language)
    decoding = config.decoding
    wordless = WordlessLines(*load_vocabularies(run))
    return {
        "format": translate.FORMAT,
        "nmt": __version__,
        "name": config.name,
        "direction": config.data.direction,
        "precision": decoding.precision,
        "decoding": {key: getattr(decoding, key) for key in DECODING_KEYS},
        "tokenizers": {
            side: load_tokenizer(config.tokenizer, language, side, run).settings()
            for side, language in zip(SIDES, languages, strict=True)
        },
        "not_copied": "".join(sorted(wordless.only_source)) if wordless.are_copied else None,
    }

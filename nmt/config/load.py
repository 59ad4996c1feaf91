"""The configuration: its sections together, how it is read, and what may not be combined.

A configuration is data: frozen, checked as a whole when it is read, and never touched afterwards.
"""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import Field, ValidationError

from nmt.config import yaml_text
from nmt.config.explain import describe, key_of, listing, path_of, prune
from nmt.config.schema import (
    BAHDANAU_READOUTS,
    LOCAL_KINDS,
    LUONG_READOUTS,
    NAME_PATTERN,
    PATTERNS,
    SIZED_SCORES,
    AttentionConfig,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    Section,
    SourceConfig,
    TokenizerConfig,
    TrainingConfig,
    VocabularyConfig,
)
from nmt.errors import ConfigError

ConfigT = TypeVar("ConfigT", bound="Config")


class Config(Section):
    name: str = Field(..., pattern=NAME_PATTERN, description="names the prepared folder and the run folder")
    seed: int = Field(1, ge=0, description="random seed of training: initial weights, batch order, dropout and teacher forcing")
    data: DataConfig = Field(DataConfig(), description="sentence pairs and languages")
    tokenizer: TokenizerConfig = Field(TokenizerConfig(), description="splits text into tokens")
    vocabulary: VocabularyConfig = Field(VocabularyConfig(), description="maps tokens to ids")
    model: ModelConfig = Field(ModelConfig(), description="the network: encoder, attention and decoder")
    training: TrainingConfig = Field(TrainingConfig(), description="how to train the model")
    decoding: DecodingConfig = Field(DecodingConfig(), description="how to translate")

    @property
    def prepared_folder(self) -> Path:
        return self.data.prepared or Path("data/prepared") / self.name

    @property
    def run_folder(self) -> Path:
        return Path("runs") / self.name

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON and YAML know them."""
        plain: dict[str, Any] = self.model_dump(mode="json")
        return plain

    @classmethod
    def from_dict(cls, values: dict[str, Any], origin: str = "configuration") -> Self:
        """Check `values` and build the configuration.

        Raises:
            ConfigError: names every fault at once, a line each, with the key's path, what is allowed and the nearest known key.
        """
        try:
            config, faults, faulty = _validate(cls, values), [], set()
        except ValidationError as error:
            faults = describe(error, cls, PATTERNS)
            faulty = {key_of(fault) for fault in error.errors()}
            # The rules between keys are tried on what is left when the faulty keys fall back to their defaults.
            remedied = deepcopy(values)
            for fault in error.errors():
                prune(remedied, path_of(fault))
            try:
                config = _validate(cls, {"name": "unnamed", **remedied})
            except ValidationError:
                raise ConfigError(listing(origin, faults)) from None
        faults += [line for line in combination_faults(config) if not _concerns(line, faulty)]
        if faults:
            raise ConfigError(listing(origin, faults))
        return config


def load(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file, apply `key.path=value` overrides, and check the whole.

    Raises:
        ConfigError: the file cannot be read, or its content is not a valid configuration.
    """
    values = read_yaml(path)
    changed = deepcopy(values)
    for override in overrides:
        _override(changed, override)
    try:
        return Config.from_dict(changed, str(path))
    except ConfigError:
        if not overrides or not _is_valid(values):
            raise
    return Config.from_dict(changed, f"{path} with {' '.join(f'--set {override}' for override in overrides)}")


def _is_valid(values: dict[str, Any]) -> bool:
    try:
        Config.from_dict(values)
    except ConfigError:
        return False
    return True


def read_yaml(path: Path) -> dict[str, Any]:
    """Raises: ConfigError if `path` is not a readable YAML mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; the configurations that come with nmt are in configs/") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    values = yaml_text.parse(text, str(path))
    if not isinstance(values, dict):
        found = "nothing" if values is None else "a list" if isinstance(values, list) else "text"
        raise ConfigError(f"{path}: expected `key: value` lines, found {found}")
    return values


def dump(config: Config) -> str:
    """The whole configuration as YAML, each key with its description beside it."""
    return yaml_text.write(config.to_dict(), Config)


def comment(text: str) -> str:
    """The YAML `text` with each key's description beside it, in place of any comment that stands there.

    Raises:
        ConfigError: `text` is not valid YAML.
    """
    return yaml_text.comment(text, Config)


def differences(old: Config, new: Config) -> dict[str, tuple[Any, Any]]:
    """Dotted key -> (old value, new value) wherever the two differ."""
    before, after = dict(_flatten(old.to_dict())), dict(_flatten(new.to_dict()))
    return {key: (before.get(key), after.get(key)) for key in {**before, **after} if before.get(key) != after.get(key)}


def combination_faults(config: Config) -> list[str]:
    """Rules between keys: one line for each combination that cannot work, naming the keys."""
    return [
        *_data_faults(config),
        *_model_faults(config.model),
        *_attention_faults(config.model),
        *_embedding_faults(config),
        *_output_faults(config),
        *_training_faults(config),
        *_decoding_faults(config),
    ]


def _data_faults(config: Config) -> Iterator[str]:
    data = config.data
    if data.src_language == data.tgt_language:
        yield f"data.direction: {data.direction} translates a language into itself"
    if (data.dev is None) != (data.test is None):
        yield "data.dev, data.test: give both, or neither (then both are split from data.source)"
    if config.vocabulary.max_size is not None and config.tokenizer.kind in ("bpe", "unigram"):
        yield f"vocabulary.max_size, tokenizer.kind: the vocabulary of {config.tokenizer.kind} is set by tokenizer.size"
    languages = {data.src_language, data.tgt_language}
    for key, source in {"data.source": data.source, "data.dev": data.dev, "data.test": data.test}.items():
        if source is not None:
            yield from _source_faults(key, source, languages)


def _source_faults(key: str, source: SourceConfig, languages: set[str]) -> Iterator[str]:
    if source.format == "lines":
        if set(source.files or {}) != languages:
            yield f"{key}.files: format lines needs a file for each of {', '.join(sorted(languages))}"
        for unused in ("path", "url", "sha256", "columns"):
            if getattr(source, unused) is not None:
                yield f"{key}.{unused}, {key}.format: format lines takes `files`, not `{unused}`"
        return
    if source.files:
        yield f"{key}.files, {key}.format: only format lines takes `files`"
    if source.path is None and source.url is None:
        yield f"{key}.path: needed (or {key}.url)"
    if source.columns is not None and set(source.columns) != languages:
        yield f"{key}.columns: needs a column for each of {', '.join(sorted(languages))}"
    if source.columns is None and source.format == "tsv":
        yield f"{key}.columns: format tsv needs a column for each of {', '.join(sorted(languages))}"
    if source.columns is None and source.format in ("manythings", "tatoeba") and "en" not in languages:
        yield f"{key}.columns: format {source.format} has English first; without English, say which column is which language"


def _model_faults(model: ModelConfig) -> Iterator[str]:
    encoder, decoder = model.encoder, model.decoder
    if model.bridge == "copy" and encoder.output_size != decoder.hidden_size:
        yield f"model.bridge, model.decoder.hidden_size: copy needs equal sizes ({_sizes(model)}); or use dense"
    if model.bridge == "copy" and (encoder.cell == "lstm") != (decoder.cell == "lstm"):
        yield f"model.bridge, model.decoder.cell: copy cannot make the state of {decoder.cell} from {encoder.cell}; or use dense"
    if model.bridge == "copy" and decoder.layers > encoder.layers:
        yield f"model.bridge, model.decoder.layers: copy has {encoder.layers} layers to fill {decoder.layers}; or use dense"
    if model.bridge == "backward" and not encoder.bidirectional:
        yield "model.bridge, model.encoder.bidirectional: a one-way encoder has no backward state; use dense or copy"
    for key, residual, layers in (("encoder", encoder.residual, encoder.layers), ("decoder", decoder.residual, decoder.layers)):
        if residual and layers == 1:
            yield f"model.{key}.residual, model.{key}.layers: residual connections begin at the second layer, and there is one"
    if decoder.readout_size is not None and decoder.readout in ("concat", "state"):
        yield f"model.decoder.readout_size, model.decoder.readout: the size of {decoder.readout} follows from the other sizes"
    allowed = LUONG_READOUTS if decoder.kind == "luong" else BAHDANAU_READOUTS
    if decoder.readout not in allowed:
        yield f"model.decoder.readout, model.decoder.kind: {decoder.kind} takes {' or '.join(allowed)}, not {decoder.readout}"
    if decoder.input_feeding and (decoder.kind != "luong" or decoder.readout != "attentional"):
        yield "model.decoder.input_feeding, model.decoder.readout: input feeding needs kind luong with readout attentional"


def _attention_faults(model: ModelConfig) -> Iterator[str]:
    score, attention = model.attention.score, model.attention
    if score in ("dot", "concat_shared") and model.encoder.output_size != model.decoder.hidden_size:
        yield f"model.attention.score, model.decoder.hidden_size: {score} needs equal sizes ({_sizes(model)}); or use general"
    if attention.scaled and score not in ("dot", "general"):
        yield f"model.attention.scaled, model.attention.score: only dot and general can be scaled, not {score}"
    if attention.size is not None and score not in SIZED_SCORES:
        yield f"model.attention.size, model.attention.score: {score} has no inner size; {', '.join(SIZED_SCORES)} have"
    yield from _kind_faults(attention)
    sizes = {"model.encoder.hidden_size": model.encoder.output_size, "model.decoder.hidden_size": model.decoder.hidden_size}
    for key, size in sizes.items():
        if size % attention.heads:
            yield f"model.attention.heads, {key}: {attention.heads} heads cannot share {size} units evenly"


def _kind_faults(attention: AttentionConfig) -> Iterator[str]:
    score, kind, heads = attention.score, attention.kind, attention.heads
    if kind in LOCAL_KINDS and score == "none":
        yield f"model.attention.kind, model.attention.score: {kind} needs a score to look with, not none"
    if kind == "coverage" and score not in SIZED_SCORES:
        yield f"model.attention.kind, model.attention.score: coverage enters {', '.join(SIZED_SCORES)}, not {score}"
    if attention.window is not None and kind not in LOCAL_KINDS:
        yield f"model.attention.window, model.attention.kind: {kind} has no window; {', '.join(LOCAL_KINDS)} have"
    if heads > 1 and score == "none":
        yield "model.attention.heads, model.attention.score: none has no heads"
    if heads > 1 and kind == "coverage":
        yield "model.attention.heads, model.attention.kind: coverage takes one head"


def _embedding_faults(config: Config) -> Iterator[str]:
    model = config.model
    if model.tie_embeddings == "all" and not config.vocabulary.joint:
        yield "model.tie_embeddings, vocabulary.joint: all needs a joint vocabulary; or tie target"
    if model.tie_embeddings == "all" and model.src_vectors is not None:
        yield "model.src_vectors, model.tie_embeddings: with all tied there is one embedding; give model.tgt_vectors"


def _output_faults(config: Config) -> Iterator[str]:
    model = config.model
    if model.output == "adaptive" and model.tie_embeddings != "none":
        yield "model.output, model.tie_embeddings: an adaptive output has no matrix to tie; use softmax"
    if model.output == "adaptive" and config.training.label_smoothing:
        yield "model.output, training.label_smoothing: smoothing over all words undoes what adaptive saves; set it to 0"
    if model.cutoffs is not None and model.output != "adaptive":
        yield f"model.cutoffs, model.output: {model.output} has no cutoffs; adaptive has"
    if model.cutoffs is not None and (not model.cutoffs or sorted({*model.cutoffs, 0})[1:] != model.cutoffs):
        yield "model.cutoffs: needs numbers above 0, each larger than the one before"


def _training_faults(config: Config) -> Iterator[str]:
    training, rate = config.training, config.training.learning_rate
    if rate.floor > rate.peak:
        yield f"training.learning_rate.floor, training.learning_rate.peak: the floor {rate.floor:g} is above the peak {rate.peak:g}"
    if training.batch.size == "auto" and training.batch.unit != "tokens":
        yield "training.batch.size, training.batch.unit: auto counts tokens; set unit to tokens"
    for kept, count in (("best", training.keep_best), ("last", training.keep_last)):
        if training.average == kept and count == 1:
            yield f"training.average, training.keep_{kept}: keep more than one to average"
    if training.momentum and training.optimizer != "sgd":
        yield f"training.momentum, training.optimizer: momentum is of sgd, not of {training.optimizer}"
    if training.coverage_loss and config.model.attention.score == "none":
        yield "training.coverage_loss, model.attention.score: none has no weights to cover the source with"


def _decoding_faults(config: Config) -> Iterator[str]:
    decoding = config.decoding
    low, high = decoding.min_length_ratio, decoding.max_length_ratio
    if low > high:
        yield f"decoding.min_length_ratio, decoding.max_length_ratio: the least {low:g} is above the most {high:g}"
    if decoding.coverage_penalty and config.model.attention.score == "none":
        yield "decoding.coverage_penalty, model.attention.score: none has no weights to cover the source with"
    for key in ("temperature", "top_k", "top_p"):
        if decoding.method == "beam" and getattr(decoding, key) != DecodingConfig.model_fields[key].default:
            yield f"decoding.{key}, decoding.method: {key} is of sampling, not of beam"
    if config.decoding.shortlist and config.model.output == "adaptive":
        yield "decoding.shortlist, model.output: the clusters of adaptive are a shortlist already; set it to 0"


def _sizes(model: ModelConfig) -> str:
    return f"encoder output {model.encoder.output_size}, decoder {model.decoder.hidden_size}"


def _validate(cls: type[ConfigT], values: dict[str, Any]) -> ConfigT:
    # Strict, and by way of JSON: a text is no number, while lists and paths are what YAML can write.
    return cls.model_validate_json(json.dumps(values, default=str), strict=True)


def _concerns(line: str, faulty: set[str]) -> bool:
    """Whether a rule between keys was judged by a key that is faulty in itself: then the rule proves nothing."""
    keys = line.partition(":")[0].split(", ")
    return any(key == fault or key.startswith(f"{fault}.") for key in keys for fault in faulty)


def _override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--set {override}: write key=value, for example --set training.epochs=3")
    here = values
    *sections, last = key.strip().split(".")
    for section in sections:
        if not isinstance(here.get(section), dict):
            here[section] = {}
        here = here[section]
    here[last] = yaml_text.parse(text, f"--set {override}")


def _flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

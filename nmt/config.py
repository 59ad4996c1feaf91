"""The configuration: the only home of defaults.

A configuration is data: frozen, checked as a whole when it is read, and never touched afterwards. Each field's description is
the comment that stands beside its key in `configs/*.yaml`.
"""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nmt import yaml_text
from nmt.errors import ConfigError
from nmt.faults import describe, key_of, listing, prune

SourceFormat = Literal["manythings", "tatoeba", "tsv", "lines"]
TokenizerKind = Literal["words", "bpe", "unigram", "characters"]
Cell = Literal["lstm", "gru", "elman"]
ScoreName = Literal["dot", "general", "concat", "additive", "concat_shared", "linear", "none"]
AttentionKind = Literal["global", "local_m", "local_p", "coverage"]
DecoderKind = Literal["luong", "bahdanau"]
ReadoutName = Literal["attentional", "concat", "state", "deep", "maxout"]
BridgeName = Literal["copy", "dense", "backward", "zero"]
Tying = Literal["none", "target", "all"]
OutputName = Literal["softmax", "adaptive"]
ForcingSchedule = Literal["constant", "linear", "exponential", "inverse_sigmoid"]
LearningRateSchedule = Literal["constant", "inverse_sqrt", "linear", "cosine", "step", "plateau"]
OptimizerName = Literal["adamw", "adam", "sgd", "adafactor"]
Metric = Literal["bleu", "chrf", "loss"]
DecodingMethod = Literal["beam", "sampling"]
LengthFormula = Literal["power", "wu"]
Precision = Literal["float32", "int8"]
DeviceName = Literal["auto", "cpu", "cuda", "mps"]

SIZED_SCORES: tuple[ScoreName, ...] = ("concat", "additive", "concat_shared")
LOCAL_KINDS: tuple[AttentionKind, ...] = ("local_m", "local_p")
LUONG_READOUTS: tuple[ReadoutName, ...] = ("attentional", "concat")
BAHDANAU_READOUTS: tuple[ReadoutName, ...] = ("state", "deep", "maxout")

NAME_PATTERN = r"^\w[\w.-]*$"
DIRECTION_PATTERN = r"^[a-z]{2,3}-[a-z]{2,3}$"
PATTERNS = {
    NAME_PATTERN: "only letters, digits, '.', '_' and '-', the first neither '.' nor '-'",
    DIRECTION_PATTERN: "two language codes, such as en-de",
}

ConfigT = TypeVar("ConfigT", bound="Config")


class Section(BaseModel):
    """A part of the configuration: frozen, and no key is accepted that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SourceConfig(Section):
    format: SourceFormat = Field(
        "manythings", description="manythings: English first; tatoeba: id, text, id, text; tsv; lines: aligned files"
    )
    path: Path | None = Field(None, description="the file (plain, .gz or .zip); for lines use `files`")
    url: str | None = Field(None, description="where to download the file when `path` is not given")
    sha256: str | None = Field(None, description="refuse a file whose SHA-256 differs")
    member: str | None = Field(None, description="which file inside a .zip; may be left out when only one can be meant")
    columns: dict[str, int | str] | None = Field(
        None, description="language -> column, by number from 1 or by name in a header row"
    )
    files: dict[str, Path] | None = Field(None, description="language -> file, for lines")


class SplitConfig(Section):
    dev: int = Field(2000, ge=1, description="pairs to validate on")
    test: int = Field(2000, ge=1, description="pairs to score at the end")
    seed: int = Field(1, description="another seed, another split")


class CleaningConfig(Section):
    max_characters: int = Field(500, ge=1, description="drop a pair with a longer side")
    max_length_ratio: float = Field(4.0, ge=1, description="drop a pair if (longer + 10) / (shorter + 10) characters exceeds this")


class DataConfig(Section):
    direction: str = Field("en-de", pattern=DIRECTION_PATTERN, description="source-target, as language codes")
    prepared: Path | None = Field(None, description="the prepared folder; data/prepared/<name> if not given")
    source: SourceConfig = Field(SourceConfig(), description="where the pairs are read: all of them, or those to train on")
    dev: SourceConfig | None = Field(None, description="a given dev set, used as it is (then test must be given too)")
    test: SourceConfig | None = Field(None, description="a given test set, used as it is")
    max_pairs: int | None = Field(None, ge=1, description="keep at most this many pairs of `source`, drawn by the split's seed")
    split: SplitConfig = Field(SplitConfig(), description="sizes of the splits cut from `source` when none are given")
    cleaning: CleaningConfig = Field(CleaningConfig(), description="which pairs are dropped; the report counts them by reason")
    workers: int | None = Field(None, ge=1, description="processes that clean and tokenise; one per core, at most 8, if not given")

    @property
    def src_language(self) -> str:
        return self.direction.split("-")[0]

    @property
    def tgt_language(self) -> str:
        return self.direction.split("-")[1]


class TokenizerConfig(Section):
    kind: TokenizerKind = Field("words", description="words (spaCy), bpe or unigram (sentencepiece), characters")
    lowercase: bool = Field(False, description="lower-case both sides; the output will be lower-case too")
    size: int = Field(8000, ge=16, description="pieces of a bpe or unigram model, per side (in all, if the vocabulary is joint)")


class VocabularyConfig(Section):
    min_frequency: int = Field(1, ge=1, description="rarer tokens of the training data become <unk>")
    max_size: int | None = Field(None, ge=5, description="keep only the most frequent tokens, the four special ones included")
    joint: bool = Field(False, description="one vocabulary (and subword model) for both languages")
    like: Path | None = Field(None, description="a run or prepared folder whose vocabularies and subword models are taken")


class EncoderConfig(Section):
    cell: Cell = Field("lstm", description="lstm, gru or elman")
    hidden_size: int = Field(256, ge=1, description="units of one direction")
    layers: int = Field(1, ge=1, description="stacked layers")
    bidirectional: bool = Field(True, description="read from both ends; the two directions are concatenated")
    residual: bool = Field(False, description="add what enters a layer to what leaves it, from the second layer on")
    layer_norm: bool = Field(False, description="normalise what leaves each layer")

    @property
    def output_size(self) -> int:
        return self.hidden_size * (2 if self.bidirectional else 1)


class AttentionConfig(Section):
    score: ScoreName = Field("general", description="dot, general, concat, additive, concat_shared, linear or none")
    size: int | None = Field(None, ge=1, description="inner size of concat, additive and concat_shared; the query's if not given")
    scaled: bool = Field(False, description="divide dot and general by the square root of the query's size")
    kind: AttentionKind = Field(
        "global", description="global; local_m, local_p: a window that moves on or is predicted; coverage: knows where it looked"
    )
    window: int | None = Field(None, ge=1, description="local_m, local_p: positions to either side of the centre; 10 if not given")
    heads: int = Field(1, ge=1, description="attentions side by side, each in its own projection of queries and values")


class DecoderConfig(Section):
    kind: DecoderKind = Field("luong", description="luong attends after the recurrent step, bahdanau before it")
    cell: Cell = Field("lstm", description="lstm, gru or elman")
    hidden_size: int = Field(256, ge=1, description="units")
    layers: int = Field(1, ge=1, description="stacked layers")
    residual: bool = Field(False, description="add what enters a layer to what leaves it, from the second layer on")
    layer_norm: bool = Field(False, description="normalise what leaves each layer")
    input_feeding: bool = Field(False, description="feed the attentional vector into the next step (luong only)")
    readout: ReadoutName = Field("attentional", description="luong: attentional, concat; bahdanau: state, deep, maxout")
    readout_size: int | None = Field(
        None, ge=1, description="size of the attentional, deep or maxout vector; the decoder's if not given"
    )


class ModelConfig(Section):
    embedding_size: int = Field(256, ge=1, description="size of the word vectors")
    encoder: EncoderConfig = Field(EncoderConfig(), description="reads the source")
    attention: AttentionConfig = Field(AttentionConfig(), description="looks back at the source")
    decoder: DecoderConfig = Field(DecoderConfig(), description="writes the target")
    bridge: BridgeName = Field(
        "dense",
        description="the decoder's first state: copy, dense (tanh of a projection), backward (the backward state's) or zero",
    )
    tie_embeddings: Tying = Field("none", description="one matrix for: none, target (input and output), all (the source too)")
    output: OutputName = Field("softmax", description="softmax, or adaptive: faster for a large vocabulary")
    cutoffs: list[int] | None = Field(
        None, description="adaptive: where the clusters of rare words begin; a tenth and a third of them"
    )
    src_vectors: Path | None = Field(
        None, description="a text or .vec file (or .gz) of word vectors to start the source embedding from"
    )
    tgt_vectors: Path | None = Field(None, description="the same for the target embedding")
    dropout: float = Field(0.2, ge=0, lt=1, description="on embeddings, between layers and before the output matrix")
    variational_dropout: bool = Field(False, description="drop the same units at all positions of a sentence")
    word_dropout: float = Field(0.0, ge=0, lt=1, description="share of words whose embedding is dropped as a whole")


class BatchConfig(Section):
    size: int = Field(64, ge=1, description="in units")
    unit: Literal["sentences", "tokens"] = Field("sentences", description="sentences, or target tokens with their padding")


class TeacherForcingConfig(Section):
    start: float = Field(1.0, ge=0, le=1, description="probability of feeding the reference rather than the model's own output")
    end: float = Field(0.0, ge=0, le=1, description="where a schedule other than constant ends")
    schedule: ForcingSchedule = Field("constant", description="constant, linear, exponential or inverse_sigmoid")
    steps: int = Field(10_000, ge=1, description="steps from start to end")
    per: Literal["sentence", "token"] = Field("token", description="draw once a sentence or once a token")


class LearningRateConfig(Section):
    peak: float = Field(1.0e-3, gt=0, description="the highest rate")
    schedule: LearningRateSchedule = Field(
        "constant", description="after warm-up: constant, inverse_sqrt, linear, cosine, step or plateau"
    )
    warmup_steps: int = Field(0, ge=0, description="steps of linear rise to the peak")
    steps: int = Field(10_000, ge=1, description="linear, cosine: steps to the floor; step: steps between reductions")
    factor: float = Field(0.5, gt=0, lt=1, description="step, plateau: by what the rate is multiplied")
    patience: int = Field(2, ge=1, description="plateau: after so many validations without a better one")
    floor: float = Field(0.0, ge=0, description="the lowest rate of linear, cosine, step and plateau")


class TrainingConfig(Section):
    start_from: Path | None = Field(None, description="a run whose best weights are started with; prepare with vocabulary.like")
    epochs: int = Field(20, ge=1, description="passes over the training data at most")
    max_steps: int | None = Field(None, ge=1, description="updates at most")
    max_minutes: float | None = Field(None, gt=0, description="minutes of training at most, validation included")
    batch: BatchConfig = Field(BatchConfig(), description="sentences of like length are batched together")
    accumulate: int = Field(1, ge=1, description="batches an update is made of, one after the other; for lack of memory")
    optimizer: OptimizerName = Field("adamw", description="adamw, adam, sgd or adafactor")
    learning_rate: LearningRateConfig = Field(LearningRateConfig(), description="of the optimizer")
    weight_decay: float = Field(0.0, ge=0, description="of the optimizer; decoupled but for adam and sgd")
    momentum: float = Field(0.0, ge=0, lt=1, description="of sgd")
    clip_norm: float = Field(1.0, gt=0, description="rescale the gradient if its norm is larger")
    max_skipped: int = Field(10, ge=1, description="stop after so many updates in a row whose loss or gradient was not finite")
    moving_average: float = Field(0.0, ge=0, lt=1, description="translate with an exponential moving average of the weights; 0.999")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="probability mass spread over the vocabulary")
    coverage_loss: float = Field(0.0, ge=0, description="weight of the penalty on looking where was looked already")
    teacher_forcing: TeacherForcingConfig = Field(TeacherForcingConfig(), description="what the decoder is fed in training")
    validate_every: int | None = Field(None, ge=1, description="steps between validations; once an epoch if not given")
    validation_pairs: int = Field(2000, ge=1, description="dev pairs that are translated for BLEU; the loss is over all")
    metric: Metric = Field("bleu", description="what the best checkpoint is best in: bleu, chrf or loss")
    keep_best: int = Field(1, ge=1, description="best checkpoints that are kept")
    keep_last: int = Field(1, ge=1, description="last checkpoints that are kept")
    average: Literal["none", "best", "last"] = Field(
        "none", description="none, or average the kept best or last at the end, for use if better"
    )
    patience: int = Field(10, ge=1, description="stop after so many validations without a better one")
    log_every: int = Field(50, ge=1, description="steps between lines of the journal")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="float32, or bfloat16 for matrix products and recurrences on a GPU"
    )
    threads: int | None = Field(None, ge=1, description="CPU threads; all cores if not given")


class DecodingConfig(Section):
    method: DecodingMethod = Field("beam", description="beam: the likeliest; sampling: drawn at random")
    beam: int = Field(5, ge=1, description="hypotheses kept; 1 is greedy")
    length_formula: LengthFormula = Field(
        "power", description="what divides the log-probability: power: length ** length_penalty; wu: ((5 + length) / 6) ** it"
    )
    length_penalty: float = Field(
        1.0, ge=0, le=10, description="the exponent; 1 with power is the mean, 0 ranks by log-probability alone"
    )
    coverage_penalty: float = Field(
        0.0, ge=0, description="weight of the penalty on source tokens that were not looked at (Wu 2016)"
    )
    min_length_ratio: float = Field(0.0, ge=0, description="do not end before this many times the source's tokens")
    max_length_ratio: float = Field(2.0, gt=0, description="stop at this many times the source's tokens, plus 10")
    no_repeat_ngram: int | None = Field(None, ge=1, description="no sequence of so many tokens comes twice in a translation")
    forbid_unknown: bool = Field(False, description="never write <unk>")
    temperature: float = Field(1.0, gt=0, description="sampling: below 1 the likely becomes likelier")
    top_k: int | None = Field(None, ge=1, description="sampling: draw from so many of the likeliest tokens")
    top_p: float = Field(1.0, gt=0, le=1, description="sampling: draw from the likeliest tokens that make up this probability")
    seed: int = Field(1, ge=0, description="sampling: another seed, other draws; a sentence's follow from it and the seed alone")
    batch: int = Field(64, ge=1, description="sentences translated together; fewer where they are long or the beam is wide")
    max_source_tokens: int = Field(1000, ge=1, description="what is longer is cut there")
    replace_unknown: bool = Field(True, description="write for <unk> what the source word looked at stands for; else <unk>")
    lexicon: bool = Field(
        True, description="look that word up in the lexicon that `nmt lexicon` made, if it did, before copying it"
    )
    shortlist: int = Field(0, ge=0, description="score only this many translations of each source word, and frequent words; 0: all")
    precision: Precision = Field("float32", description="float32; or int8, products in 8-bit integers, on a CPU alone")


class Config(Section):
    name: str = Field(..., pattern=NAME_PATTERN, description="names the prepared folder and the run")
    seed: int = Field(1, ge=0, description="initial weights, batch order, dropout and teacher forcing follow from it")
    data: DataConfig = Field(DataConfig(), description="the sentence pairs")
    tokenizer: TokenizerConfig = Field(TokenizerConfig(), description="text to tokens and back, without loss")
    vocabulary: VocabularyConfig = Field(VocabularyConfig(), description="tokens to ids")
    model: ModelConfig = Field(ModelConfig(), description="encoder, attention, decoder")
    training: TrainingConfig = Field(TrainingConfig(), description="how the model learns")
    decoding: DecodingConfig = Field(DecodingConfig(), description="how it translates")

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
                prune(remedied, fault["loc"])
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
    for override in overrides:
        _override(values, override)
    return Config.from_dict(values, str(path))


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

"""The configuration and its sections: the only place for keys, types, bounds and defaults.

The description of a field is also the comment beside its key in `configs/*.yaml` and in the
config.yaml of every run.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field

from nmt.config.parts import (
    ATTENTIONS,
    BRIDGES,
    CELLS,
    DECODERS,
    METHODS,
    METRICS,
    PAIR_FORMATS,
    READOUTS,
    SCORES,
    TOKENIZERS,
    TrainingPrecision,
    choices,
    having,
)
from nmt.config.section import Section, with_extras, without_unused_extras

if TYPE_CHECKING:  # the type checker cannot read the tables
    from typing import Annotated as NameIn
else:

    class NameIn:
        """`NameIn[str, TABLE]`: the name of one of the rows of a table."""

        def __class_getitem__(cls, parameters: tuple[type, Iterable[str]]) -> Any:
            return Literal[tuple(parameters[1])]


VALIDATED = (*METRICS, "loss")

ForcingSchedule = Literal["constant", "linear", "exponential", "inverse_sigmoid"]
LearningRateSchedule = Literal["constant", "inverse_sqrt", "linear", "cosine", "step", "plateau"]
OptimizerName = Literal["adamw", "adam", "sgd", "adafactor"]
Precision = Literal["float32", "int8"]  # of the graphs of a model

MAX_SEED = 2**63 - 1

NAME_PATTERN = r"^\w[\w.-]*$"
DIRECTION_PATTERN = r"^[a-z]{2,3}-[a-z]{2,3}$"
PATTERN_TEXTS = {
    NAME_PATTERN: "a name of letters, digits, '_', '.' and '-' that does not begin with '.' or '-'",
    DIRECTION_PATTERN: "two language codes, for example en-de, each of two or three small letters, "
    "without a region or script (en-fr for en-fr_CA)",
}


class SourceConfig(Section):
    format: NameIn[str, PAIR_FORMATS] = Field(
        "manythings", description=choices(part.trait("text") for part in PAIR_FORMATS.values())
    )
    path: Path | list[Path] | None = Field(
        None,
        description="file to read, plain or .gz, .bz2, .xz, .zst, .zip; or a pattern (parts/*.gz), "
        "or a list of both; prepared: the folder",
    )
    url: str | list[str] | None = Field(
        None, description="download the file, or files, from here if `path` is not given"
    )
    sha256: str | None = Field(
        None, description="expected SHA-256 of the file; an error if it differs"
    )
    member: str | None = Field(
        None, description="file inside a .zip; not needed if only one is possible"
    )
    columns: dict[str, int | str] | None = Field(
        None,
        description="column of each language: a number (from 1), a name in the header row, or a "
        "name in the records",
    )
    files: dict[str, Path | list[Path]] | None = Field(
        None, description="lines: the file of each language, or the files (a pattern, or a list)"
    )
    accelerators: bool = Field(
        False,
        description="menus of programs: take the marks of accelerators off both sides (_File, "
        "&File, 保存(_S)); po, xliff: always",
    )


class NamedSourceConfig(SourceConfig):
    share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="part of the training pairs that are from this source; default: see "
        "data.temperature",
    )


class SplitConfig(Section):
    dev: int = Field(2000, ge=1, description="pairs in the dev set")
    test: int = Field(2000, ge=1, description="pairs in the test set")
    seed: int = Field(1, description="random seed of the split")
    direction: str | None = Field(
        None,
        pattern=DIRECTION_PATTERN,
        description="split as for this direction, so that models of both directions have the same "
        "dev and test sets; default: data.direction",
    )
    source: str | None = Field(
        None,
        description="with data.sources: the source of the dev and test pairs; default: all, by "
        "their numbers of pairs",
    )


@with_extras("data.cleaning")
class CleaningConfig(Section):
    max_characters: int = Field(
        500, ge=1, description="drop a pair if either side is longer, in characters"
    )
    max_length_ratio: float = Field(
        4.0,
        ge=1,
        description="drop a pair if (longer + 10) / (shorter + 10), in characters, is larger",
    )


@with_extras("data")
class DataConfig(Section):
    direction: str = Field(
        "en-de",
        pattern=DIRECTION_PATTERN,
        description="source and target language codes, for example en-de",
    )
    prepared: Path | None = Field(
        None, description="folder of the prepared data; default: data/prepared/<name>"
    )
    source: SourceConfig = Field(
        SourceConfig(),
        description="where the pairs come from (only the training pairs if `dev` and `test` are "
        "given)",
    )
    sources: dict[str, NamedSourceConfig] | None = Field(
        None,
        description="several sources by name, in place of `source`; each has the keys of `source`, "
        "and a share",
    )
    temperature: float = Field(
        1.0,
        ge=1,
        description="how evenly sources without a share are mixed: 1 takes each pair once, larger "
        "values favor small sources (pairs ** (1 / T))",
    )
    dev: SourceConfig | None = Field(
        None, description="a separate dev set, used unchanged (needs `test` too)"
    )
    test: SourceConfig | None = Field(
        None, description="a separate test set, used unchanged (needs `dev` too)"
    )
    max_pairs: int | None = Field(
        None,
        ge=1,
        description="use at most this many pairs of `source`, chosen at random with split.seed",
    )
    split: SplitConfig = Field(
        SplitConfig(), description="how to split `source` if `dev` and `test` are not given"
    )
    cleaning: CleaningConfig = Field(
        CleaningConfig(),
        description="filters for pairs; `nmt prepare` reports how many each one drops",
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="processes for cleaning and tokenizing; default: one per core, at most 8",
    )

    @property
    def src_language(self) -> str:
        return self.direction.split("-")[0]

    @property
    def tgt_language(self) -> str:
        return self.direction.split("-")[1]

    @property
    def opposite_direction(self) -> str:
        return f"{self.tgt_language}-{self.src_language}"

    @property
    def training_sources(self) -> dict[str, SourceConfig]:
        """The sources of the training pairs, by the key of the configuration."""
        if self.sources is None:
            return {"source": self.source}
        return {f"sources.{name}": source for name, source in self.sources.items()}


@with_extras("tokenizer")
class TokenizerConfig(Section):
    kind: NameIn[str, TOKENIZERS] = Field(
        "words", description=choices(part.trait("text") for part in TOKENIZERS.values())
    )
    lowercase: bool = Field(
        False, description="lowercase both sides; translations are then lowercase too"
    )
    size: int = Field(
        8000,
        ge=16,
        description="bpe, unigram: number of subwords per language, or in total if "
        "vocabulary.joint",
    )


@with_extras("vocabulary")
class VocabularyConfig(Section):
    min_frequency: int = Field(
        1, ge=1, description="replace rarer tokens of the training data by <unk>"
    )
    max_size: int | None = Field(
        None,
        ge=5,
        description="largest vocabulary per language, including 4 special tokens; default: no "
        "limit",
    )
    joint: bool = Field(
        False, description="share one vocabulary (and subword model) between both languages"
    )
    like: Path | None = Field(
        None, description="reuse the vocabularies and subword models of this run or prepared folder"
    )
    extend: int = Field(
        0,
        ge=0,
        description="add the tokens that `like` does not know and that occur at least N times in "
        "the training data; 0: none",
    )


class EncoderConfig(Section):
    cell: NameIn[str, CELLS] = Field("lstm", description=choices(CELLS))
    hidden_size: int = Field(256, ge=1, description="units per direction")
    layers: int = Field(1, ge=1, le=100, description="number of stacked layers")
    bidirectional: bool = Field(
        True, description="read in both directions and concatenate the two states"
    )
    residual: bool = Field(
        False, description="add each layer's input to its output, from the second layer on"
    )
    layer_norm: bool = Field(False, description="layer normalization of each layer's output")

    @property
    def output_size(self) -> int:
        return self.hidden_size * (2 if self.bidirectional else 1)


class AttentionConfig(Section):
    score: NameIn[str, SCORES] = Field(
        "general", description=f"{choices(SCORES)}; none: no attention"
    )
    size: int | None = Field(
        None,
        ge=1,
        description=f"{choices(having(SCORES, 'sized'))}: hidden size; default: the query size",
    )
    scaled: bool = Field(
        False, description="dot, general: divide the score by the square root of the query size"
    )
    kind: NameIn[str, ATTENTIONS] = Field(
        "global",
        description="global, local_m (moving window), local_p (predicted window) or coverage (sees "
        "its past weights)",
    )
    window: int | None = Field(
        None,
        ge=1,
        description="local_m, local_p: positions on each side of the window's center; default: 10",
    )


class DecoderConfig(Section):
    kind: NameIn[str, DECODERS] = Field(
        "luong",
        description="luong (attend after the recurrent step), bahdanau (before it), conditional "
        "(between two) or gnmt (after the first layer)",
    )
    cell: NameIn[str, CELLS] = Field("lstm", description=choices(CELLS))
    hidden_size: int = Field(256, ge=1, description="number of units")
    layers: int = Field(1, ge=1, le=100, description="number of stacked layers")
    residual: bool = Field(
        False, description="add each layer's input to its output, from the second layer on"
    )
    layer_norm: bool = Field(False, description="layer normalization of each layer's output")
    input_feeding: bool = Field(
        False, description="luong: feed the attentional vector into the next step"
    )
    readout: NameIn[str, READOUTS] = Field(
        "attentional",
        description="layer before the output: "
        + "; ".join(
            f"{kind}: {choices(part.trait('readouts') or READOUTS)}"
            for kind, part in DECODERS.items()
        ),
    )
    readout_size: int | None = Field(
        None,
        ge=1,
        description="attentional, deep, maxout: size of the vector; default: decoder.hidden_size",
    )


@with_extras("model")
class ModelConfig(Section):
    embedding_size: int = Field(256, ge=1, description="size of the word embeddings")
    encoder: EncoderConfig = Field(EncoderConfig(), description="reads the source sentence")
    attention: AttentionConfig = Field(
        AttentionConfig(), description="weights the source positions at each step"
    )
    decoder: DecoderConfig = Field(DecoderConfig(), description="writes the translation")
    bridge: NameIn[str, BRIDGES] = Field(
        "dense",
        description="first decoder state: copy, dense (tanh projection), backward (same, of the "
        "backward state) or zero",
    )
    tie_embeddings: Literal["none", "target", "all"] = Field(
        "none",
        description="shared weights: none, target (input and output embeddings) or all (source "
        "embeddings too)",
    )
    lexical_bias: int = Field(
        0,
        ge=0,
        description="number of dictionary translations of each source token that become more "
        "probable (found by word alignment); 0: none",
    )
    lexical_words: int = Field(
        0,
        ge=0,
        description="use whole-word translations for the N most frequent source words, instead of "
        "those of their subwords; 0: none",
    )
    dropout: float = Field(
        0.2,
        ge=0,
        lt=1,
        description="dropout rate on embeddings, between layers and before the output layer",
    )
    src_embedding_dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout rate on source embeddings; default: `dropout`"
    )
    tgt_embedding_dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout rate on target embeddings; default: `dropout`"
    )
    encoder_output_dropout: float = Field(
        0.0, ge=0, lt=1, description="dropout rate on the encoder states that attention reads"
    )


class BatchConfig(Section):
    size: int = Field(64, ge=1, description="batch size in `unit`s")
    unit: Literal["sentences", "tokens"] = Field(
        "sentences", description="sentences or tokens (target tokens, including padding)"
    )


class TeacherForcingConfig(Section):
    start: float = Field(
        1.0,
        ge=0,
        le=1,
        description="probability of feeding the reference token instead of the model's own output",
    )
    end: float = Field(0.0, ge=0, le=1, description="final probability (not for constant)")
    schedule: ForcingSchedule = Field(
        "constant", description=f"path from `start` to `end`: {choices(get_args(ForcingSchedule))}"
    )
    steps: int = Field(10_000, ge=1, description="steps from `start` to `end`")
    per: Literal["sentence", "token"] = Field(
        "token", description="make the random choice once per sentence or token"
    )


class LearningRateConfig(Section):
    peak: float = Field(1.0e-3, gt=0, description="highest learning rate")
    schedule: LearningRateSchedule = Field(
        "constant", description=f"after warm-up: {choices(get_args(LearningRateSchedule))}"
    )
    warmup_steps: int = Field(0, ge=0, description="steps of linear warm-up to `peak`")
    steps: int | None = Field(
        10_000,
        ge=1,
        description="linear, cosine: steps until `floor`, warm-up included (null: as long as the "
        "training); step: steps between reductions",
    )
    factor: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="step, plateau: multiply the learning rate by this at each reduction",
    )
    patience: int = Field(
        2, ge=1, description="plateau: reduce after this many validations without improvement"
    )
    floor: float = Field(
        0.0, ge=0, description="linear, cosine, step, plateau: lowest learning rate"
    )


@with_extras("training")
class TrainingConfig(Section):
    start_from: Path | None = Field(
        None,
        description="initialize from the best checkpoint of this run (prepare the data with "
        "vocabulary.like)",
    )
    epochs: int = Field(20, ge=1, description="maximum number of passes over the training data")
    max_steps: int | None = Field(
        None, ge=1, description="maximum number of updates; default: no limit"
    )
    max_minutes: float | None = Field(
        None,
        gt=0,
        description="maximum training time in minutes, including all validations; default: no "
        "limit",
    )
    batch: BatchConfig = Field(
        BatchConfig(), description="mini-batches; sentences of similar length are grouped"
    )
    accumulate: int = Field(
        1, ge=1, description="batches per update (gradient accumulation, to save memory)"
    )
    optimizer: OptimizerName = Field("adamw", description=choices(get_args(OptimizerName)))
    learning_rate: LearningRateConfig = Field(
        LearningRateConfig(), description="learning rate and its schedule"
    )
    weight_decay: float = Field(
        0.0, ge=0, description="decoupled for adamw and adafactor, L2 for adam and sgd; 0: none"
    )
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum of sgd; 0: none")
    clip_norm: float = Field(1.0, gt=0, description="clip the gradient to this norm")
    max_skipped: int = Field(
        10,
        ge=1,
        description="stop after this many updates in a row with a loss or gradient that is not "
        "finite",
    )
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="probability mass spread over the vocabulary; 0: none"
    )
    distillation: float = Field(
        0.0,
        ge=0,
        le=1,
        description="weight of the soft targets in the training data (Kim and Rush 2016); the "
        "references have the rest",
    )
    teacher_forcing: TeacherForcingConfig = Field(
        TeacherForcingConfig(), description="when to feed the decoder the reference in training"
    )
    validate_every: int | float | None = Field(
        None,
        gt=0,
        description="steps between validations, or below 1 their part of the training; default: "
        "once per epoch",
    )
    validation_pairs: int = Field(
        2000,
        ge=1,
        description="dev pairs (the first ones) to translate for BLEU and chrF; the loss uses all",
    )
    final_pairs: int = Field(
        2000,
        ge=0,
        description="dev pairs (the first ones) to translate with beam search at the end, to "
        "choose among the kept checkpoints; 0, or metric loss: keep the choice of the "
        "validations",
    )
    metric: NameIn[str, VALIDATED] = Field(
        "bleu",
        description=f"choose the best checkpoint by {choices(VALIDATED)}; of equal ones, "
        "the one with the lower loss on dev",
    )
    checkpoint_minutes: float | None = Field(
        30.0,
        gt=0,
        description="also save a checkpoint when the last one is this old, to lose little after a "
        "crash; null: never",
    )
    timeout_minutes: float = Field(
        30.0,
        gt=0,
        description="several processes: end the training if one does not answer for this long; "
        "must be longer than a validation",
    )
    keep_best: int = Field(1, ge=1, description="number of best checkpoints to keep")
    keep_last: int = Field(1, ge=1, description="number of last checkpoints to keep")
    average: Literal["none", "best", "last"] = Field(
        "none",
        description="which kept checkpoints to average at the end: none, best or last; the average "
        "is used if it is better",
    )
    patience: int = Field(
        10, ge=1, description="early stopping: stop after this many validations without improvement"
    )
    log_every: int = Field(50, ge=1, description="steps between log entries")
    precision: TrainingPrecision = Field(
        "float32",
        description="float32, bfloat16 (mixed precision: faster on many GPUs and processors) or "
        "auto (the faster one, as measured when the training begins)",
    )
    threads: int | None = Field(None, ge=1, le=1024, description="CPU threads; default: all cores")


@with_extras("decoding")
class DecodingConfig(Section):
    method: NameIn[str, METHODS] = Field(
        "beam",
        description=choices(part.trait("text") for part in METHODS.values()),
    )
    beam: int = Field(5, ge=1, le=10_000, description="beam size; 1: greedy search")
    length_penalty: float = Field(
        1.0, ge=0, le=10, description="exponent of the length that divides a score; 0: none"
    )
    min_length_ratio: float = Field(
        0.0, ge=0, description="minimum length of a translation, as a multiple of the source tokens"
    )
    max_length_ratio: float = Field(
        2.0,
        gt=0,
        le=1000,
        description="maximum length of a translation, as a multiple of the source tokens, plus 10",
    )
    forbid_unknown: bool = Field(False, description="never produce <unk>")
    temperature: float = Field(
        1.0,
        ge=0.001,
        le=1000,
        description="sampling: divide the logits by this; below 1 is less random; mbr: flatter "
        "weights above 1",
    )
    top_k: int | None = Field(
        None, ge=1, description="sampling: choose among the k most probable tokens; default: all"
    )
    top_p: float = Field(
        1.0,
        gt=0,
        le=1,
        description="sampling: choose among the most probable tokens with this total probability",
    )
    seed: int = Field(
        1,
        ge=0,
        le=MAX_SEED,
        description="sampling: random seed; the result depends only on it and the sentence",
    )
    batch: int = Field(
        128,
        ge=1,
        description="maximum batch size in sentences; smaller for long sentences and wide beams",
    )
    max_source_tokens: int = Field(
        1000, ge=1, description="cut source sentences after this many tokens"
    )
    replace_unknown: bool = Field(
        True, description="replace <unk> by the most-attended source word, translated or copied"
    )
    precision: Literal["auto", Precision] = Field(
        "auto",
        description="int8 (products of 8-bit integers, CPU only), float32 or auto (int8 on a CPU)",
    )

    @property
    def cpu_precision(self) -> Precision:
        """Of the graphs on a CPU."""
        return "int8" if self.precision == "auto" else self.precision

    @property
    def search(self) -> str:
        """ "beam" or "sampling": what finds the hypotheses, from which another method chooses."""
        return "sampling" if self.method == "sampling" else "beam"


class Config(Section):
    """The whole configuration. It is data: checked once when it is read, and frozen."""

    name: str = Field(
        ..., pattern=NAME_PATTERN, description="names the prepared folder and the run folder"
    )
    seed: int = Field(
        1,
        ge=0,
        le=MAX_SEED,
        description="random seed of training: initial weights, batch order, dropout and teacher "
        "forcing",
    )
    data: DataConfig = Field(DataConfig(), description="sentence pairs and languages")
    tokenizer: TokenizerConfig = Field(TokenizerConfig(), description="splits text into tokens")
    vocabulary: VocabularyConfig = Field(VocabularyConfig(), description="maps tokens to ids")
    model: ModelConfig = Field(
        ModelConfig(), description="the network: encoder, attention and decoder"
    )
    training: TrainingConfig = Field(TrainingConfig(), description="how to train the model")
    decoding: DecodingConfig = Field(DecodingConfig(), description="how to translate")

    @property
    def prepared_folder(self) -> Path:
        """Where `nmt prepare` writes, and `nmt train` reads, the data."""
        return self.data.prepared or Path("data/prepared") / self.name

    @property
    def run_folder(self) -> Path:
        """Where `nmt train` writes by default."""
        return Path("runs") / self.name

    def to_dict(self) -> dict[str, Any]:
        """The configuration as nested dictionaries of plain values, ready for JSON and YAML."""
        return without_unused_extras(self.model_dump(mode="json"))

"""The sections of the configuration: the only home of keys, types, bounds and defaults.

Each field's description is the comment that stands beside its key in `configs/*.yaml`.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from nmt.errors import ConfigError

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
    size: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        64, description="in units; auto: as many tokens as are found to fit into the GPU's memory"
    )
    unit: Literal["sentences", "tokens"] = Field("sentences", description="sentences, or target tokens with their padding")

    @property
    def number(self) -> int:
        """The size. Raises: ConfigError if it is still to be found."""
        if self.size == "auto":
            raise ConfigError("training.batch.size: auto is found by `nmt train` alone; set a number")
        return self.size


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
    beam: int = Field(5, ge=1, le=10_000, description="hypotheses kept; 1 is greedy")
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
    max_length_ratio: float = Field(2.0, gt=0, le=1000, description="stop at this many times the source's tokens, plus 10")
    no_repeat_ngram: int | None = Field(None, ge=1, description="no sequence of so many tokens comes twice in a translation")
    forbid_unknown: bool = Field(False, description="never write <unk>")
    temperature: float = Field(1.0, ge=0.001, le=1000, description="sampling: below 1 the likely becomes likelier")
    top_k: int | None = Field(None, ge=1, description="sampling: draw from so many of the likeliest tokens")
    top_p: float = Field(1.0, gt=0, le=1, description="sampling: draw from the likeliest tokens that make up this probability")
    seed: int = Field(1, ge=0, description="sampling: another seed, other draws; a sentence's follow from it and the seed alone")
    batch: int = Field(64, ge=1, description="sentences translated together; fewer where they are long or the beam is wide")
    max_source_tokens: int = Field(1000, ge=1, description="what is longer is cut there")
    replace_unknown: bool = Field(True, description="write for <unk> what the source word looked at stands for; else <unk>")
    lexicon: bool = Field(
        True, description="look that word up in the lexicon that `nmt lexicon` made, if it did, before copying it"
    )
    shortlist: int = Field(
        0,
        ge=0,
        le=50,
        description="score only this many translations of each word of the batch, 50 at most, and frequent words; 0: all",
    )
    precision: Precision = Field(
        "float32", description="float32; or int8, products in 8-bit integers, on a CPU alone, rounded batch by batch"
    )

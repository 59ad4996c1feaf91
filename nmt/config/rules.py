"""The rules between keys: combinations of values that cannot work together."""

import re
from collections.abc import Iterator, Mapping

from nmt.config.parts import (
    ATTENTIONS,
    BRIDGES,
    CELLS,
    DECODERS,
    FORMATS,
    METHODS,
    OUTPUTS,
    READOUTS,
    SCORES,
    TOKENIZERS,
    choices,
    having,
)
from nmt.config.problems import Problem
from nmt.config.schema import (
    NAME_PATTERN,
    PATTERN_TEXTS,
    AttentionConfig,
    Config,
    DataConfig,
    DecoderConfig,
    DecodingConfig,
    ModelConfig,
    SourceConfig,
    TrainingConfig,
)
from nmt.plugins import hooks

MAX_SHARE_ERROR = 1e-6  # of a sum


def check_rules(config: Config) -> list[Problem]:
    """A problem for each rule that the configuration breaks."""
    return [
        *_data_problems(config),
        *_model_problems(config.model),
        *_attention_problems(config.model),
        *_embedding_and_output_problems(config),
        *_lexical_bias_problems(config),
        *_training_problems(config.training),
        *_objective_problems(config),
        *_decoding_problems(config),
        *(problem for rules in hooks("rules", config) for problem in rules(config)),
    ]


def _data_problems(config: Config) -> Iterator[Problem]:
    data, kind = config.data, config.tokenizer.kind
    if data.src_language == data.tgt_language:
        yield Problem(
            ("data.direction",), f"the source and target languages of {data.direction} are the same"
        )
    if data.split.direction not in (None, data.direction, data.opposite_direction):
        text = (
            f"{data.split.direction} is neither {data.direction} nor {data.opposite_direction}; "
            "set data.split.direction to one of them"
        )
        yield Problem(("data.split.direction", "data.direction"), text)
    if (data.dev is None) != (data.test is None):
        yield Problem(
            ("data.dev", "data.test"),
            "give both or neither; without them, both sets are split from data.source",
        )
    if config.vocabulary.max_size is not None and TOKENIZERS[kind].trait("learned"):
        text = f"tokenizer.size sets the vocabulary size of {kind}; remove vocabulary.max_size"
        yield Problem(("vocabulary.max_size", "tokenizer.kind"), text)
    tags = config.vocabulary.tags or []
    if len({"<pad>", "<unk>", "<sos>", "<eos>", *tags}) < 4 + len(tags):
        yield Problem(
            ("vocabulary.tags",), "each tag must be new: no special token, and not named twice"
        )
    yield from _mixture_problems(data)
    languages = {data.src_language, data.tgt_language}
    for key, source in {**data.training_sources, "dev": data.dev, "test": data.test}.items():
        if source is not None:
            yield from _source_problems(f"data.{key}", source, languages)


def _mixture_problems(data: DataConfig) -> Iterator[Problem]:
    """Several sources, and their shares."""
    if data.sources is None:
        if data.temperature != 1:
            yield Problem(
                ("data.temperature", "data.sources"),
                "has no effect with one source; remove it, or name several in data.sources",
            )
        if data.split.source is not None:
            yield Problem(
                ("data.split.source", "data.sources"),
                "there is only one source; remove it, or name several in data.sources",
            )
        return
    if data.source != SourceConfig():
        yield Problem(
            ("data.source", "data.sources"),
            "both are set; move data.source into data.sources, under a name",
        )
    if not data.sources:
        yield Problem(("data.sources",), "is empty; name at least one source")
    if data.split.source is not None and data.split.source not in data.sources:
        yield Problem(
            ("data.split.source",),
            f"{data.split.source} is not in data.sources: {', '.join(data.sources)}",
        )
    if data.split.source is not None and data.dev is not None:
        yield Problem(
            ("data.split.source", "data.dev"),
            "data.dev and data.test have files of their own; remove data.split.source",
        )
    shares = [source.share for source in data.sources.values() if source.share is not None]
    total, has_all = sum(shares), len(shares) == len(data.sources)
    if shares and (abs(total - 1) > MAX_SHARE_ERROR if has_all else total >= 1):
        needed = "1" if has_all else "less than 1, as a source without a share takes the rest"
        yield Problem(
            ("data.sources",), f"the shares add up to {total:g}, but must add up to {needed}"
        )
    names = [name for name in data.sources if not re.match(NAME_PATTERN, name)]
    if names:
        yield Problem(("data.sources",), f"{names[0]!r} is not {PATTERN_TEXTS[NAME_PATTERN]}")


def _source_problems(key: str, source: SourceConfig, languages: set[str]) -> Iterator[Problem]:
    part, names = FORMATS[source.format], " and ".join(sorted(languages))
    if part.trait("files"):
        yield from _files_problems(key, source, languages)
        return
    if source.files:
        text = (
            f"only format {choices(having(FORMATS, 'files'))} reads `files`; give `path` or `url`"
        )
        yield Problem((f"{key}.files", f"{key}.format"), text)
    if source.path is None and source.url is None:
        yield Problem((f"{key}.path",), f"must be given (or {key}.url)")
    if isinstance(source.path, list):
        if not source.path:
            yield Problem((f"{key}.path",), "the list names no file")
        if source.sha256 is not None:
            text = "one hash cannot check several files; remove sha256"
            yield Problem((f"{key}.sha256", f"{key}.path"), text)
    if source.columns is None:
        if part.trait("needs_columns"):
            text = f"format {source.format} needs one column for each language: {names}"
            yield Problem((f"{key}.columns",), text)
        if part.trait("english_first") and "en" not in languages:
            text = f"format {source.format} has English in its first column; for other languages, "
            yield Problem((f"{key}.columns",), f"{text}give the column of each")
    else:
        yield from _column_problems(key, source, source.columns, languages)


def _column_problems(
    key: str, source: SourceConfig, columns: Mapping[str, int | str], languages: set[str]
) -> Iterator[Problem]:
    kind, keys = FORMATS[source.format].trait("columns"), (f"{key}.columns", f"{key}.format")
    if kind == "none":
        yield Problem(keys, f"format {source.format} names its languages itself; remove `columns`")
    if kind == "name" and any(isinstance(column, int) for column in columns.values()):
        text = f"format {source.format} has names, not numbers, for example translation.de"
        yield Problem(keys, text)
    if set(columns) != languages:
        names = " and ".join(sorted(languages))
        yield Problem((f"{key}.columns",), f"needs one column for each language: {names}")
    elif len({*columns.values()}) < len(columns):
        text = "the same column for both languages; give the column of each"
        yield Problem((f"{key}.columns",), text)


def _files_problems(key: str, source: SourceConfig, languages: set[str]) -> Iterator[Problem]:
    files, name = source.files or {}, f"format {source.format}"
    if set(files) != languages:
        text = f"{name} needs one file for each language: {' and '.join(sorted(languages))}"
        yield Problem((f"{key}.files",), text)
    elif len({str(file) for file in files.values()}) < len(files):
        yield Problem((f"{key}.files",), "the same file for both languages; name the file of each")
    for unused in ("path", "url", "sha256", "columns"):
        if getattr(source, unused) is not None:
            keys = f"{key}.{unused}", f"{key}.format"
            yield Problem(keys, f"{name} reads `files`; remove `{unused}`")


def _model_problems(model: ModelConfig) -> Iterator[Problem]:
    encoder, decoder = model.encoder, model.decoder
    if BRIDGES[model.bridge].trait("copies") and encoder.output_size != decoder.hidden_size:
        yield Problem(
            ("model.bridge", "model.decoder.hidden_size"),
            f"copy needs equal sizes ({_sizes(model)}); or use dense",
        )
    if BRIDGES[model.bridge].trait("copies") and CELLS[encoder.cell].trait("cell_state") != CELLS[
        decoder.cell
    ].trait("cell_state"):
        text = f"copy cannot turn the state of {encoder.cell} into one of {decoder.cell}; use dense"
        yield Problem(("model.bridge", "model.decoder.cell"), text)
    if BRIDGES[model.bridge].trait("copies") and decoder.layers > encoder.layers:
        text = (
            f"copy cannot fill {decoder.layers} decoder layers from {encoder.layers} in the "
            "encoder; use dense"
        )
        yield Problem(("model.bridge", "model.decoder.layers"), text)
    if BRIDGES[model.bridge].trait("backward") and not encoder.bidirectional:
        yield Problem(
            ("model.bridge", "model.encoder.bidirectional"),
            "backward needs a bidirectional encoder; or use dense or copy",
        )
    for name, part in (("encoder", encoder), ("decoder", decoder)):
        if part.residual and part.layers == 1:
            text = "residual connections start at the second layer, but there is only one"
            yield Problem((f"model.{name}.residual", f"model.{name}.layers"), text)
    yield from _decoder_problems(decoder)


def _decoder_problems(decoder: DecoderConfig) -> Iterator[Problem]:
    part = DECODERS[decoder.kind]
    least, most = part.trait("least_layers"), part.trait("most_layers")
    if (least and decoder.layers < least) or (most and decoder.layers > most):
        keys = "model.decoder.layers", "model.decoder.kind"
        yield Problem(keys, part.trait("layers_text"))
    if decoder.readout_size is not None and READOUTS[decoder.readout].trait("fixed_size"):
        text = f"the other sizes determine the size of {decoder.readout}; remove readout_size"
        yield Problem(("model.decoder.readout_size", "model.decoder.readout"), text)
    if decoder.readout not in (fitting := part.trait("readouts") or READOUTS):
        text = f"{decoder.kind} needs {choices(fitting)}, not {decoder.readout}"
        yield Problem(("model.decoder.readout", "model.decoder.kind"), text)
    if decoder.input_feeding and part.trait("feeds") != decoder.readout:
        text = "input feeding needs kind luong and readout attentional"
        yield Problem(("model.decoder.input_feeding", "model.decoder.readout"), text)


def _attention_problems(model: ModelConfig) -> Iterator[Problem]:
    attention, score = model.attention, model.attention.score
    if (
        SCORES[score].trait("equal_sizes")
        and model.encoder.output_size != model.decoder.hidden_size
    ):
        keys = "model.attention.score", "model.decoder.hidden_size"
        yield Problem(keys, f"{score} needs equal sizes ({_sizes(model)}); or use general")
    if attention.scaled and not SCORES[score].trait("scalable"):
        yield Problem(
            ("model.attention.scaled", "model.attention.score"),
            f"only dot and general can be scaled, not {score}",
        )
    if attention.size is not None and not SCORES[score].trait("sized"):
        text = f"{score} has no hidden size; remove it or use {choices(having(SCORES, 'sized'))}"
        yield Problem(("model.attention.size", "model.attention.score"), text)
    yield from _attention_kind_problems(attention)
    sizes = {
        "model.encoder.hidden_size": model.encoder.output_size,
        "model.decoder.hidden_size": model.decoder.hidden_size,
    }
    for key, size in sizes.items():
        if size % attention.heads:
            text = f"{attention.heads} heads cannot divide {size} units evenly"
            yield Problem(("model.attention.heads", key), text)


def _attention_kind_problems(attention: AttentionConfig) -> Iterator[Problem]:
    score, kind, heads = attention.score, attention.kind, attention.heads
    if ATTENTIONS[kind].trait("window") and score == "none":
        yield Problem(
            ("model.attention.kind", "model.attention.score"),
            f"{kind} needs attention, but the score is none",
        )
    if ATTENTIONS[kind].trait("sized") and not SCORES[score].trait("sized"):
        text = f"{kind} needs {choices(having(SCORES, 'sized'))}, not {score}"
        yield Problem(("model.attention.kind", "model.attention.score"), text)
    if attention.window is not None and not ATTENTIONS[kind].trait("window"):
        text = f"{kind} has no window; remove it or use {choices(having(ATTENTIONS, 'window'))}"
        yield Problem(("model.attention.window", "model.attention.kind"), text)
    if heads > 1 and score == "none":
        yield Problem(
            ("model.attention.heads", "model.attention.score"),
            "heads need attention, but the score is none",
        )
    if heads > 1 and ATTENTIONS[kind].trait("single_head"):
        yield Problem(
            ("model.attention.heads", "model.attention.kind"), f"{kind} allows only one head"
        )


def _embedding_and_output_problems(config: Config) -> Iterator[Problem]:
    model, adaptive = config.model, OUTPUTS[config.model.output].trait("partial")
    if model.tie_embeddings == "all" and not config.vocabulary.joint:
        yield Problem(
            ("model.tie_embeddings", "vocabulary.joint"),
            "all needs a joint vocabulary; or use target",
        )
    if model.tie_embeddings == "all" and model.src_embedding_dropout is not None:
        text = "tie_embeddings all has only one embedding; give model.tgt_embedding_dropout instead"
        yield Problem(("model.src_embedding_dropout", "model.tie_embeddings"), text)
    if adaptive:
        yield from _adaptive_problems(config)
    if model.cutoffs is not None and not adaptive:
        yield Problem(
            ("model.cutoffs", "model.output"),
            f"{model.output} has no cutoffs; remove them or use adaptive",
        )
    if model.cutoffs is not None and (
        not model.cutoffs or sorted({*model.cutoffs, 0})[1:] != model.cutoffs
    ):
        yield Problem(("model.cutoffs",), "must be positive numbers in increasing order")


def _adaptive_problems(config: Config) -> Iterator[Problem]:
    """Of an adaptive softmax."""
    if config.model.tie_embeddings != "none":
        yield Problem(
            ("model.output", "model.tie_embeddings"),
            "adaptive has no output matrix to share; use softmax or tie none",
        )
    if config.training.label_smoothing:
        text = "label smoothing computes all words, which adaptive avoids; set it to 0"
        yield Problem(("model.output", "training.label_smoothing"), text)
    if config.training.distillation:
        text = (
            "soft targets need the probabilities of all words, which adaptive avoids computing; "
            "set it to 0, or use softmax"
        )
        yield Problem(("model.output", "training.distillation"), text)


def _lexical_bias_problems(config: Config) -> Iterator[Problem]:
    model, kind = config.model, config.tokenizer.kind
    if model.lexical_bias and model.attention.score == "none":
        yield Problem(
            ("model.lexical_bias", "model.attention.score"),
            "a lexical bias needs attention, but the score is none",
        )
    if model.lexical_bias and OUTPUTS[model.output].trait("partial"):
        text = "a lexical bias needs the logits of all words, which adaptive avoids; use softmax"
        yield Problem(("model.lexical_bias", "model.output"), text)
    if model.lexical_words and not model.lexical_bias:
        yield Problem(
            ("model.lexical_words", "model.lexical_bias"),
            "whole words need a lexical bias; set it, or set model.lexical_words to 0",
        )
    elif model.lexical_words and not TOKENIZERS[kind].trait("learned"):
        learned = choices(having(TOKENIZERS, "learned"))
        remedy = f"use {learned}, or set model.lexical_words to 0"
        text = f"tokens of kind {kind} do not form words; {remedy}"
        yield Problem(("model.lexical_words", "tokenizer.kind"), text)


def _training_problems(training: TrainingConfig) -> Iterator[Problem]:
    rate = training.learning_rate
    if rate.floor > rate.peak:
        keys = "training.learning_rate.floor", "training.learning_rate.peak"
        yield Problem(keys, f"the floor {rate.floor:g} is above the peak {rate.peak:g}")
    if rate.schedule == "step" and rate.steps is None:
        keys = "training.learning_rate.steps", "training.learning_rate.schedule"
        yield Problem(keys, "step needs the number of steps between reductions")
    for kept, count in (("best", training.keep_best), ("last", training.keep_last)):
        if training.average == kept and count == 1:
            text = "averaging needs at least two checkpoints; keep more"
            yield Problem(("training.average", f"training.keep_{kept}"), text)
    if training.moving_average_warmup and not training.moving_average:
        text = "there is no moving average; set its decay"
        yield Problem(("training.moving_average_warmup", "training.moving_average"), text)
    if training.momentum and training.optimizer != "sgd":
        yield Problem(
            ("training.momentum", "training.optimizer"),
            f"only sgd uses momentum, not {training.optimizer}",
        )


def _objective_problems(config: Config) -> Iterator[Problem]:
    training = config.training
    if training.coverage_loss and config.model.attention.score == "none":
        text = "the coverage loss needs attention, but the score is none"
        yield Problem(("training.coverage_loss", "model.attention.score"), text)
    if training.alignment_loss and not config.model.lexical_bias:
        text = (
            "guided alignment needs the lexicon of the lexical bias; set model.lexical_bias, for "
            "example to 20"
        )
        yield Problem(("training.alignment_loss", "model.lexical_bias"), text)


def _decoding_problems(config: Config) -> Iterator[Problem]:
    decoding = config.decoding
    low, high = decoding.min_length_ratio, decoding.max_length_ratio
    if low > high:
        keys = "decoding.min_length_ratio", "decoding.max_length_ratio"
        yield Problem(keys, f"the minimum {low:g} is above the maximum {high:g}")
    if decoding.coverage_penalty and config.model.attention.score == "none":
        text = "the coverage penalty needs attention, but the score is none"
        yield Problem(("decoding.coverage_penalty", "model.attention.score"), text)
    yield from _method_problems(decoding)


def _method_problems(decoding: DecodingConfig) -> Iterator[Problem]:
    """Keys that the method does not use."""
    is_tempered = METHODS[decoding.method].trait("tempered")
    for key in ("temperature", "top_k", "top_p", "epsilon"):
        is_set = getattr(decoding, key) != DecodingConfig.model_fields[key].default
        if is_set and decoding.search == "beam" and not (key == "temperature" and is_tempered):
            keys = f"decoding.{key}", f"decoding.{decoding.search_key}"
            yield Problem(keys, f"only sampling uses {key}, not beam")


def _sizes(model: ModelConfig) -> str:
    return f"encoder output {model.encoder.output_size}, decoder {model.decoder.hidden_size}"

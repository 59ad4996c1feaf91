"""The rules between keys: combinations of values that cannot work together."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from nmt.config.parts import (
    ATTENTIONS,
    BRIDGES,
    CELLS,
    DECODERS,
    FORMATS,
    METHODS,
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
    Config,
    DataConfig,
    ModelConfig,
    SourceConfig,
)
from nmt.plugins import hooks

Rule = tuple[Any, str, str]  # whether it is broken; the keys, and what to say if it is


def check_rules(config: Config) -> list[Problem]:
    """A problem for each rule that the configuration breaks."""
    rules = chain(
        _data_rules(config),
        _bridge_rules(config.model),
        _model_rules(config.model),
        _attention_rules(config.model),
        _vocabulary_rules(config),
        _lexicon_rules(config),
        _training_rules(config),
        _decoding_rules(config),
    )
    problems = [Problem(tuple(keys.split(", ")), text) for broken, keys, text in rules if broken]
    return [*problems, *chain.from_iterable(rules(config) for rules in hooks("rules", config))]


def _data_rules(config: Config) -> Iterator[Rule]:
    data = config.data
    kind = config.tokenizer.kind
    yield (
        data.src_language == data.tgt_language,
        "data.direction",
        f"the source and target languages of {data.direction} are the same",
    )
    yield (
        data.split.direction not in (None, data.direction, data.opposite_direction),
        "data.split.direction, data.direction",
        f"{data.split.direction} is neither {data.direction} nor {data.opposite_direction}; "
        "set data.split.direction to one of them",
    )
    yield (
        (data.dev is None) != (data.test is None),
        "data.dev, data.test",
        "give both or neither; without them, both sets are split from data.source",
    )
    yield (
        config.vocabulary.max_size is not None and TOKENIZERS[kind].trait("learned"),
        "vocabulary.max_size, tokenizer.kind",
        f"tokenizer.size sets the vocabulary size of {kind}; remove vocabulary.max_size",
    )
    yield (
        config.vocabulary.extend and config.vocabulary.like is None,
        "vocabulary.extend, vocabulary.like",
        "extends the vocabularies of another run; set vocabulary.like, or remove it",
    )
    yield from _mixture_rules(data)
    for key, source in {**data.training_sources, "dev": data.dev, "test": data.test}.items():
        if source is not None:
            yield from _source_rules(f"data.{key}", source, {data.src_language, data.tgt_language})


def _mixture_rules(data: DataConfig) -> Iterator[Rule]:
    split_source = data.split.source
    yield (
        data.sources is None and data.temperature != 1,
        "data.temperature, data.sources",
        "has no effect with one source; remove it, or name several in data.sources",
    )
    yield (
        data.sources is None and split_source is not None,
        "data.split.source, data.sources",
        "there is only one source; remove it, or name several in data.sources",
    )
    if data.sources is None:
        return
    yield (
        data.source != SourceConfig(),
        "data.source, data.sources",
        "both are set; move data.source into data.sources, under a name",
    )
    yield not data.sources, "data.sources", "is empty; name at least one source"
    yield (
        split_source is not None and split_source not in data.sources,
        "data.split.source",
        f"{split_source} is not in data.sources: {', '.join(data.sources)}",
    )
    yield (
        split_source is not None and data.dev is not None,
        "data.split.source, data.dev",
        "data.dev and data.test have files of their own; remove data.split.source",
    )
    shares = [source.share for source in data.sources.values() if source.share is not None]
    total, has_all = sum(shares), len(shares) == len(data.sources)
    needed = "1" if has_all else "less than 1, as a source without a share takes the rest"
    yield (
        shares and (abs(total - 1) > 1e-6 if has_all else total >= 1),
        "data.sources",
        f"the shares add up to {total:g}, but must add up to {needed}",
    )
    wrong = next((name for name in data.sources if not re.match(NAME_PATTERN, name)), None)
    yield wrong is not None, "data.sources", f"{wrong!r} is not {PATTERN_TEXTS[NAME_PATTERN]}"


def _source_rules(key: str, source: SourceConfig, languages: set[str]) -> Iterator[Rule]:
    if FORMATS[source.format].trait("files"):
        yield from _aligned_file_rules(key, source, languages)
        return
    yield (
        source.files,
        f"{key}.files, {key}.format",
        f"only format {choices(having(FORMATS, 'files'))} reads `files`; give `path` or `url`",
    )
    yield source.path is None and source.url is None, f"{key}.path", f"must be given (or {key}.url)"
    yield source.path == [], f"{key}.path", "the list names no file"
    yield (
        isinstance(source.path or source.url, list) and source.sha256 is not None,
        f"{key}.sha256, {key}.path",
        "one hash cannot check several files; remove sha256",
    )
    yield from _column_rules(key, source, languages)


def _aligned_file_rules(key: str, source: SourceConfig, languages: set[str]) -> Iterator[Rule]:
    files, name = source.files or {}, f"format {source.format}"
    yield (
        set(files) != languages,
        f"{key}.files",
        f"{name} needs one file for each language: {' and '.join(sorted(languages))}",
    )
    yield (
        set(files) == languages
        and len({*map(str, files.values())}) < len(files)
        and not all(str(path).endswith(".zip") for path in files.values()),
        f"{key}.files",
        "the same file for both languages; name the file of each (only a zip may hold both)",
    )
    for unused in ("path", "url", "sha256", "columns"):
        yield (
            getattr(source, unused) is not None,
            f"{key}.{unused}, {key}.format",
            f"{name} reads `files`; remove `{unused}`",
        )


def _column_rules(key: str, source: SourceConfig, languages: set[str]) -> Iterator[Rule]:
    part, name, columns = FORMATS[source.format], f"format {source.format}", source.columns
    each = f"one column for each language: {' and '.join(sorted(languages))}"
    if columns is None:
        yield part.trait("needs_columns"), f"{key}.columns", f"{name} needs {each}"
        yield (
            part.trait("english_first") and "en" not in languages,
            f"{key}.columns",
            f"{name} has English in its first column; for other languages, give the column of each",
        )
        return
    yield (
        part.trait("columns") == "none",
        f"{key}.columns, {key}.format",
        f"{name} names its languages itself; remove `columns`",
    )
    yield (
        part.trait("columns") == "name" and int in map(type, columns.values()),
        f"{key}.columns, {key}.format",
        f"{name} has names, not numbers, for example translation.de",
    )
    yield set(columns) != languages, f"{key}.columns", f"needs {each}"
    yield (
        set(columns) == languages and len({*columns.values()}) < len(columns),
        f"{key}.columns",
        "the same column for both languages; give the column of each",
    )


def _bridge_rules(model: ModelConfig) -> Iterator[Rule]:
    encoder, decoder = model.encoder, model.decoder
    copies = BRIDGES[model.bridge].trait("copies")
    yield (
        copies and encoder.output_size != decoder.hidden_size,
        "model.bridge, model.decoder.hidden_size",
        f"copy needs equal sizes ({_sizes(model)}); or use dense",
    )
    cell_states = {CELLS[cell].trait("cell_state") for cell in (encoder.cell, decoder.cell)}
    yield (
        copies and len(cell_states) > 1,
        "model.bridge, model.decoder.cell",
        f"copy cannot turn the state of {encoder.cell} into one of {decoder.cell}; use dense",
    )
    yield (
        copies and decoder.layers > encoder.layers,
        "model.bridge, model.decoder.layers",
        f"copy cannot fill {decoder.layers} decoder layers from {encoder.layers} in the encoder; "
        "use dense",
    )
    yield (
        BRIDGES[model.bridge].trait("backward") and not encoder.bidirectional,
        "model.bridge, model.encoder.bidirectional",
        "backward needs a bidirectional encoder; or use dense or copy",
    )


def _model_rules(model: ModelConfig) -> Iterator[Rule]:
    decoder = model.decoder
    for name, stack in (("encoder", model.encoder), ("decoder", decoder)):
        yield (
            stack.residual and stack.layers == 1,
            f"model.{name}.residual, model.{name}.layers",
            "residual connections start at the second layer, but there is only one",
        )
    part = DECODERS[decoder.kind]
    least, most = part.trait("least_layers"), part.trait("most_layers")
    yield (
        (least and decoder.layers < least) or (most and decoder.layers > most),
        "model.decoder.layers, model.decoder.kind",
        part.trait("layers_text"),
    )
    yield (
        decoder.readout_size is not None and READOUTS[decoder.readout].trait("fixed_size"),
        "model.decoder.readout_size, model.decoder.readout",
        f"the other sizes determine the size of {decoder.readout}; remove readout_size",
    )
    fitting = part.trait("readouts") or READOUTS
    yield (
        decoder.readout not in fitting,
        "model.decoder.readout, model.decoder.kind",
        f"{decoder.kind} needs {choices(fitting)}, not {decoder.readout}",
    )
    yield (
        decoder.input_feeding and part.trait("feeds") != decoder.readout,
        "model.decoder.input_feeding, model.decoder.readout",
        "input feeding needs kind luong and readout attentional",
    )


def _attention_rules(model: ModelConfig) -> Iterator[Rule]:
    attention, score = model.attention, model.attention.score
    score_part, kind = SCORES[score], attention.kind
    sized = choices(having(SCORES, "sized"))
    yield (
        score_part.trait("equal_sizes") and model.encoder.output_size != model.decoder.hidden_size,
        "model.attention.score, model.decoder.hidden_size",
        f"{score} needs equal sizes ({_sizes(model)}); or use general",
    )
    yield (
        attention.scaled and not score_part.trait("scalable"),
        "model.attention.scaled, model.attention.score",
        f"only {choices(having(SCORES, 'scalable'))} can be scaled, not {score}",
    )
    yield (
        attention.size is not None and not score_part.trait("sized"),
        "model.attention.size, model.attention.score",
        f"{score} has no hidden size; remove it or use {sized}",
    )
    yield (
        ATTENTIONS[kind].trait("window") and score == "none",
        "model.attention.kind, model.attention.score",
        f"{kind} needs attention, but the score is none",
    )
    yield (
        ATTENTIONS[kind].trait("sized") and not score_part.trait("sized"),
        "model.attention.kind, model.attention.score",
        f"{kind} needs {sized}, not {score}",
    )
    yield (
        attention.window is not None and not ATTENTIONS[kind].trait("window"),
        "model.attention.window, model.attention.kind",
        f"{kind} has no window; remove it or use {choices(having(ATTENTIONS, 'window'))}",
    )


def _vocabulary_rules(config: Config) -> Iterator[Rule]:
    model = config.model
    yield (
        model.tie_embeddings == "all" and not config.vocabulary.joint,
        "model.tie_embeddings, vocabulary.joint",
        "all needs a joint vocabulary; or use target",
    )
    yield (
        model.tie_embeddings == "all" and model.src_embedding_dropout is not None,
        "model.src_embedding_dropout, model.tie_embeddings",
        "tie_embeddings all has only one embedding; give model.tgt_embedding_dropout instead",
    )


def _lexicon_rules(config: Config) -> Iterator[Rule]:
    model = config.model
    kind = config.tokenizer.kind
    yield (
        model.lexical_bias and model.attention.score == "none",
        "model.lexical_bias, model.attention.score",
        "a lexical bias needs attention, but the score is none",
    )
    yield (
        model.lexical_words and not model.lexical_bias,
        "model.lexical_words, model.lexical_bias",
        "whole words need a lexical bias; set it, or set model.lexical_words to 0",
    )
    yield (
        model.lexical_words and model.lexical_bias and not TOKENIZERS[kind].trait("learned"),
        "model.lexical_words, tokenizer.kind",
        f"tokens of kind {kind} do not form words; use {choices(having(TOKENIZERS, 'learned'))}, "
        "or set model.lexical_words to 0",
    )


def _training_rules(config: Config) -> Iterator[Rule]:
    training, rate = config.training, config.training.learning_rate
    yield (
        rate.floor > rate.peak,
        "training.learning_rate.floor, training.learning_rate.peak",
        f"the floor {rate.floor:g} is above the peak {rate.peak:g}",
    )
    yield (
        rate.schedule == "step" and rate.steps is None,
        "training.learning_rate.steps, training.learning_rate.schedule",
        "step needs the number of steps between reductions",
    )
    for kept, count in (("best", training.keep_best), ("last", training.keep_last)):
        yield (
            training.average == kept and count == 1,
            f"training.average, training.keep_{kept}",
            "averaging needs at least two checkpoints; keep more",
        )
    yield (
        training.momentum and training.optimizer != "sgd",
        "training.momentum, training.optimizer",
        f"only sgd uses momentum, not {training.optimizer}",
    )


def _decoding_rules(config: Config) -> Iterator[Rule]:
    decoding = config.decoding
    low, high = decoding.min_length_ratio, decoding.max_length_ratio
    yield (
        low > high,
        "decoding.min_length_ratio, decoding.max_length_ratio",
        f"the minimum {low:g} is above the maximum {high:g}",
    )
    is_tempered = METHODS[decoding.method].trait("tempered")
    for key in ("temperature", "top_k", "top_p"):
        is_set = getattr(decoding, key) != type(decoding).model_fields[key].default
        yield (
            is_set and decoding.search == "beam" and not (key == "temperature" and is_tempered),
            f"decoding.{key}, decoding.method",
            f"only sampling uses {key}, not {decoding.method}",
        )


def _sizes(model: ModelConfig) -> str:
    return f"encoder output {model.encoder.output_size}, decoder {model.decoder.hidden_size}"

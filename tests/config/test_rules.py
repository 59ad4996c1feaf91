"""The rules between keys: each message by its text."""

import pytest

from nmt.config.load import config_from_dict
from nmt.config.schema import NAME_PATTERN, PATTERN_TEXTS
from tests.config.examples import Values, problems_of, values_with

DATA = [
    (
        {"direction": "en-en", "source": {"path": "a"}},
        "data.direction: the source and target languages of en-en are the same",
    ),
    (
        {"direction": "de-en", "source": {"path": "a"}, "split": {"direction": "en-fr"}},
        "data.split.direction, data.direction: en-fr is neither de-en nor en-de; set "
        "data.split.direction to one of them",
    ),
    (
        {"source": {"path": "a"}, "dev": {"path": "b"}},
        "data.dev, data.test: give both or neither; without them, both sets are split from "
        "data.source",
    ),
    (
        {"source": {"path": "a"}, "test": {"path": "b"}},
        "data.dev, data.test: give both or neither; without them, both sets are split from "
        "data.source",
    ),
    ({}, "data.source.path: must be given (or data.source.url)"),
    ({"source": {"path": []}}, "data.source.path: the list names no file"),
    (
        {"source": {"path": ["a", "b"], "sha256": "c"}},
        "data.source.sha256, data.source.path: one hash cannot check several files; remove sha256",
    ),
    (
        {"source": {"format": "tmx", "path": "a", "columns": {"en": "x", "de": "y"}}},
        "data.source.columns, data.source.format: format tmx names its languages itself; remove "
        "`columns`",
    ),
    (
        {"source": {"format": "jsonl", "path": "a", "columns": {"en": 1, "de": "y"}}},
        "data.source.columns, data.source.format: format jsonl has names, not numbers, for "
        "example translation.de",
    ),
    (
        {"source": {"path": "a"}, "sources": {"b": {"path": "b"}}},
        "data.source, data.sources: both are set; move data.source into data.sources, under a name",
    ),
    ({"sources": {}}, "data.sources: is empty; name at least one source"),
    (
        {"sources": {"b/c": {"path": "b"}}},
        f"data.sources: 'b/c' is not {PATTERN_TEXTS[NAME_PATTERN]}",
    ),
    ({"sources": {"b": {}}}, "data.sources.b.path: must be given (or data.sources.b.url)"),
    (
        {"sources": {"a": {"path": "a", "share": 0.5}, "b": {"path": "b", "share": 0.4}}},
        "data.sources: the shares add up to 0.9, but must add up to 1",
    ),
    (
        {"sources": {"a": {"path": "a", "share": 1}, "b": {"path": "b"}}},
        "data.sources: the shares add up to 1, but must add up to less than 1, as a source "
        "without a share takes the rest",
    ),
    (
        {"source": {"path": "a"}, "temperature": 2},
        "data.temperature, data.sources: has no effect with one source; remove it, or name "
        "several in data.sources",
    ),
    (
        {"source": {"path": "a"}, "split": {"source": "a"}},
        "data.split.source, data.sources: there is only one source; remove it, or name several in "
        "data.sources",
    ),
    (
        {"sources": {"a": {"path": "a"}}, "split": {"source": "b"}},
        "data.split.source: b is not in data.sources: a",
    ),
    (
        {
            "sources": {"a": {"path": "a"}},
            "split": {"source": "a"},
            "dev": {"path": "b"},
            "test": {"path": "c"},
        },
        "data.split.source, data.dev: data.dev and data.test have files of their own; remove "
        "data.split.source",
    ),
    (
        {"source": {"format": "lines"}},
        "data.source.files: format lines needs one file for each language: de and en",
    ),
    (
        {"source": {"format": "lines", "files": {"en": "a", "fr": "b"}}},
        "data.source.files: format lines needs one file for each language: de and en",
    ),
    (
        {"source": {"format": "lines", "files": {"en": "a", "de": "b"}, "path": "c"}},
        "data.source.path, data.source.format: format lines reads `files`; remove `path`",
    ),
    (
        {"source": {"format": "lines", "files": {"en": "a", "de": "b"}, "url": "c"}},
        "data.source.url, data.source.format: format lines reads `files`; remove `url`",
    ),
    (
        {"source": {"format": "lines", "files": {"en": "a", "de": "b"}, "sha256": "c"}},
        "data.source.sha256, data.source.format: format lines reads `files`; remove `sha256`",
    ),
    (
        {
            "source": {
                "format": "lines",
                "files": {"en": "a", "de": "b"},
                "columns": {"en": 1, "de": 2},
            }
        },
        "data.source.columns, data.source.format: format lines reads `files`; remove `columns`",
    ),
    (
        {"source": {"path": "c", "files": {"en": "a", "de": "b"}}},
        "data.source.files, data.source.format: only format lines reads `files`; give `path` or "
        "`url`",
    ),
    (
        {"source": {"format": "tsv", "path": "c"}},
        "data.source.columns: format tsv needs one column for each language: de and en",
    ),
    (
        {"source": {"format": "tsv", "path": "c", "columns": {"en": 1}}},
        "data.source.columns: needs one column for each language: de and en",
    ),
    (
        {"direction": "fr-de", "source": {"path": "c"}},
        "data.source.columns: format manythings has English in its first column; for other "
        "languages, give the column of each",
    ),
    (
        {"direction": "fr-de", "source": {"path": "c", "format": "tatoeba"}},
        "data.source.columns: format tatoeba has English in its first column; for other "
        "languages, give the column of each",
    ),
    (
        {"source": {"path": "a"}, "dev": {"format": "lines"}, "test": {"path": "c"}},
        "data.dev.files: format lines needs one file for each language: de and en",
    ),
    (
        {"source": {"path": "a"}, "dev": {"path": "b"}, "test": {}},
        "data.test.path: must be given (or data.test.url)",
    ),
]
MODEL = [
    (
        {"attention": {"score": "dot"}},
        "model.attention.score, model.decoder.hidden_size: dot needs equal sizes (encoder output "
        "512, decoder 256); or use general",
    ),
    (
        {"attention": {"score": "concat_shared"}},
        "model.attention.score, model.decoder.hidden_size: concat_shared needs equal sizes "
        "(encoder output 512, decoder 256); or use general",
    ),
    (
        {"attention": {"score": "additive", "scaled": True}},
        "model.attention.scaled, model.attention.score: only dot or general can be scaled, not "
        "additive",
    ),
    (
        {"bridge": "copy"},
        "model.bridge, model.decoder.hidden_size: copy needs equal sizes (encoder output 512, "
        "decoder 256); or use dense",
    ),
    (
        {"bridge": "copy", "encoder": {"bidirectional": False, "cell": "gru"}},
        "model.bridge, model.decoder.cell: copy cannot turn the state of gru into one of lstm; "
        "use dense",
    ),
    (
        {"bridge": "copy", "encoder": {"bidirectional": False}, "decoder": {"layers": 2}},
        "model.bridge, model.decoder.layers: copy cannot fill 2 decoder layers from 1 in the "
        "encoder; use dense",
    ),
    (
        {"decoder": {"readout": "deep"}},
        "model.decoder.readout, model.decoder.kind: luong needs attentional or concat, not deep",
    ),
    (
        {"decoder": {"kind": "bahdanau"}},
        "model.decoder.readout, model.decoder.kind: bahdanau needs state, deep or maxout, not "
        "attentional",
    ),
    (
        {"decoder": {"kind": "gnmt"}},
        "model.decoder.layers, model.decoder.kind: gnmt attends between the first layer and those "
        "above it; set layers to 2 or more, or use luong",
    ),
    (
        {"decoder": {"kind": "conditional", "readout": "deep", "layers": 2}},
        "model.decoder.layers, model.decoder.kind: conditional makes two recurrent steps with one "
        "state; set layers to 1, or use gnmt",
    ),
    (
        {"decoder": {"kind": "conditional"}},
        "model.decoder.readout, model.decoder.kind: conditional needs state, deep or maxout, not "
        "attentional",
    ),
    (
        {"decoder": {"kind": "gnmt", "layers": 2, "input_feeding": True}},
        "model.decoder.input_feeding, model.decoder.readout: input feeding needs kind luong and "
        "readout attentional",
    ),
    (
        {"decoder": {"readout": "concat", "input_feeding": True}},
        "model.decoder.input_feeding, model.decoder.readout: input feeding needs kind luong and "
        "readout attentional",
    ),
    (
        {"bridge": "backward", "encoder": {"bidirectional": False}},
        "model.bridge, model.encoder.bidirectional: backward needs a bidirectional encoder; or "
        "use dense or copy",
    ),
    (
        {"encoder": {"residual": True}},
        "model.encoder.residual, model.encoder.layers: residual connections start at the second "
        "layer, but there is only one",
    ),
    (
        {"decoder": {"residual": True}},
        "model.decoder.residual, model.decoder.layers: residual connections start at the second "
        "layer, but there is only one",
    ),
    (
        {"attention": {"kind": "local_p", "score": "none"}},
        "model.attention.kind, model.attention.score: local_p needs attention, but the score is "
        "none",
    ),
    (
        {"attention": {"kind": "local_m", "score": "none"}},
        "model.attention.kind, model.attention.score: local_m needs attention, but the score is "
        "none",
    ),
    (
        {"attention": {"kind": "coverage", "score": "linear"}},
        "model.attention.kind, model.attention.score: coverage needs concat, additive or "
        "concat_shared, not linear",
    ),
    (
        {"attention": {"kind": "coverage"}},
        "model.attention.kind, model.attention.score: coverage needs concat, additive or "
        "concat_shared, not general",
    ),
    (
        {"attention": {"window": 3}},
        "model.attention.window, model.attention.kind: global has no window; remove it or use "
        "local_m or local_p",
    ),
    (
        {"attention": {"score": "none"}, "lexical_bias": 5},
        "model.lexical_bias, model.attention.score: a lexical bias needs attention, but the score "
        "is none",
    ),
    (
        {"lexical_words": 100},
        "model.lexical_words, model.lexical_bias: whole words need a lexical bias; set it, or set "
        "model.lexical_words to 0",
    ),
    (
        {"lexical_bias": 5, "lexical_words": 100},
        "model.lexical_words, tokenizer.kind: tokens of kind words do not form words; use bpe or "
        "unigram, or set model.lexical_words to 0",
    ),
    (
        {"decoder": {"readout": "concat", "readout_size": 8}},
        "model.decoder.readout_size, model.decoder.readout: the other sizes determine the size of "
        "concat; remove readout_size",
    ),
    (
        {"attention": {"size": 8}},
        "model.attention.size, model.attention.score: general has no hidden size; remove it or "
        "use concat, additive or concat_shared",
    ),
    (
        {"tie_embeddings": "all"},
        "model.tie_embeddings, vocabulary.joint: all needs a joint vocabulary; or use target",
    ),
]
TRAINING = [
    (
        {"average": "best"},
        "training.average, training.keep_best: averaging needs at least two checkpoints; keep more",
    ),
    (
        {"average": "last"},
        "training.average, training.keep_last: averaging needs at least two checkpoints; keep more",
    ),
    (
        {"learning_rate": {"peak": 0.1, "floor": 0.2}},
        "training.learning_rate.floor, training.learning_rate.peak: the floor 0.2 is above the "
        "peak 0.1",
    ),
    (
        {"learning_rate": {"schedule": "step", "steps": None}},
        "training.learning_rate.steps, training.learning_rate.schedule: step needs the number of "
        "steps between reductions",
    ),
    (
        {"momentum": 0.9},
        "training.momentum, training.optimizer: only sgd uses momentum, not adamw",
    ),
]
DECODING = [
    (
        {"min_length_ratio": 3},
        "decoding.min_length_ratio, decoding.max_length_ratio: the minimum 3 is above the maximum "
        "2",
    ),
    (
        {"temperature": 0.5},
        "decoding.temperature, decoding.method: only sampling uses temperature, not beam",
    ),
    ({"top_k": 5}, "decoding.top_k, decoding.method: only sampling uses top_k, not beam"),
    ({"top_p": 0.9}, "decoding.top_p, decoding.method: only sampling uses top_p, not beam"),
    (
        {"method": "mbr", "top_p": 0.9},
        "decoding.top_p, decoding.method: only sampling uses top_p, not mbr",
    ),
    (
        {"mbr": {"utility": "bleu"}},
        "decoding.mbr.utility, decoding.method: only mbr uses utility, not beam",
    ),
    (
        {"method": "sampling", "rerank": {"run": "back"}},
        "decoding.rerank.run, decoding.method: reranking is for the hypotheses of beam search, not "
        "for samples",
    ),
]
CASES: list[tuple[Values, str]] = [
    *(({"data": data}, problem) for data, problem in DATA),
    *(({"model": model}, problem) for model, problem in MODEL),
    *(({"training": training}, problem) for training, problem in TRAINING),
    *(({"decoding": decoding}, problem) for decoding, problem in DECODING),
    *(
        (
            {"tokenizer": {"kind": kind}, "vocabulary": {"max_size": 100}},
            "vocabulary.max_size, tokenizer.kind: tokenizer.size sets the vocabulary size of "
            f"{kind}; remove vocabulary.max_size",
        )
        for kind in ("bpe", "unigram")
    ),
    (
        {"vocabulary": {"extend": 20}},
        "vocabulary.extend, vocabulary.like: extends the vocabularies of another run; set "
        "vocabulary.like, or remove it",
    ),
    (
        {
            "model": {"tie_embeddings": "all", "src_embedding_dropout": 0.1},
            "vocabulary": {"joint": True},
        },
        "model.src_embedding_dropout, model.tie_embeddings: tie_embeddings all has only one "
        "embedding; give model.tgt_embedding_dropout instead",
    ),
]


@pytest.mark.parametrize(("sections", "problem"), CASES, ids=str)
def test_a_combination_that_cannot_work(sections: Values, problem: str) -> None:
    assert problems_of(values_with(**sections)) == [problem]


def test_combination_of_decoding_that_is_allowed() -> None:
    config_from_dict(values_with(decoding={"method": "mbr", "temperature": 2}))

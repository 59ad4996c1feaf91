"""Models as graphs: onnxruntime finds what torch finds, for all parts of a model."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from nmt.config.parts import ATTENTIONS, BRIDGES, CELLS, DECODERS, READOUTS, SCORES
from nmt.config.rules import check_rules
from nmt.config.schema import Config, DecodingConfig, ModelConfig, Precision
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.forced import score_batch
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.model import Terms, TranslationModel
from nmt.decoding.onnx_model import OnnxModel
from nmt.decoding.search import search
from nmt.decoding.torch_model import TorchModel, graphs_of
from nmt.model.graphs import make_graphs
from nmt.model.seq2seq import Seq2Seq
from tests.model.test_lexical_bias import SIZE, SRC_V, TGT_V, fill_with_words, random_table

NORMALIZED = {"layer_norm": True, "residual": True}
SYSTEMS: dict[str, dict[str, Any]] = {
    "luong": {},
    "input feeding": {"decoder": {"input_feeding": True, "readout_size": 5, "layers": 2}},
    "elman": {
        "encoder": {"cell": "elman", "layers": 2, **NORMALIZED},
        "decoder": {"cell": "elman", "layers": 3, "readout": "concat", **NORMALIZED},
        "attention": {"score": "dot"},
    },
    "gru": {
        "encoder": {"cell": "gru", "layers": 2},
        "decoder": {"cell": "gru", "hidden_size": 8},
        "attention": {"score": "concat_shared"},
        "bridge": "copy",
    },
    "one direction": {
        "encoder": {"bidirectional": False, "hidden_size": 8},
        "bridge": "copy",
    },
    "local_m": {"attention": {"kind": "local_m", "window": 1}},
    "local_p": {"attention": {"kind": "local_p", "scaled": True}},
    "additive": {"attention": {"score": "additive"}},
    "coverage": {"attention": {"kind": "coverage", "score": "concat"}},
    "linear": {"attention": {"score": "linear"}, "tie_embeddings": "target"},
    "no attention": {"attention": {"score": "none"}, "bridge": "zero"},
    "bahdanau, maxout": {
        "decoder": {"kind": "bahdanau", "cell": "gru", "readout": "maxout", "layers": 2},
        "attention": {"score": "additive"},
        "bridge": "backward",
    },
    "bahdanau, coverage": {
        "decoder": {"kind": "bahdanau", "readout": "state"},
        "attention": {"kind": "coverage", "score": "additive"},
    },
    "conditional, gru": {"decoder": {"kind": "conditional", "cell": "gru", "readout": "deep"}},
    "conditional": {
        "decoder": {"kind": "conditional", "readout": "state", "layer_norm": True},
        "attention": {"kind": "local_p", "score": "concat", "window": 3},
        "tie_embeddings": "target",
    },
    "gnmt": {"decoder": {"kind": "gnmt", "layers": 3, "readout": "deep", **NORMALIZED}},
    "gnmt, local_m": {
        "decoder": {"kind": "gnmt", "layers": 2, "cell": "elman"},
        "attention": {"kind": "local_m", "window": 1},
        "bridge": "zero",
    },
    "local_m, gru": {
        "decoder": {"cell": "gru"},
        "attention": {"kind": "local_m", "score": "additive"},
    },
    "lexical bias": {"lexical_bias": SIZE},
    "lexical bias, words, coverage": {
        "lexical_bias": SIZE,
        "lexical_words": 4,
        "attention": {"kind": "coverage", "score": "additive"},
    },
}
each_system = pytest.mark.parametrize("system", SYSTEMS)
SOURCES = [[4, 5, 6, 7, 11], [4, 10], [9], [5, 5, 8, 7], [6, 5, 7, 8, 9, 4, 10]]
PREFIXES = [[], [5], [6, 4], [], []]
WAYS = {
    "beam": DecodingConfig(beam=3),
    "greedy": DecodingConfig(beam=1, forbid_unknown=True),
    "sampling": DecodingConfig(method="sampling", top_k=5),
}


def config_of(system: str) -> ModelConfig:
    sections = SYSTEMS[system]
    sizes = {"encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 8}}
    merged = {name: {**size, **sections.get(name, {})} for name, size in sizes.items()}
    return ModelConfig.model_validate({"embedding_size": 6, **sections, **merged})


def onnx_model(
    model: Seq2Seq, precision: Precision = "float32", threads: int | None = None
) -> OnnxModel:
    files = graphs_of(model, precision)
    assert files is not None
    return OnnxModel(files, threads)


@cache
def models(system: str, seed: int = 4) -> tuple[Seq2Seq, TorchModel, OnnxModel]:
    """Far from uniform, so that sentences differ."""
    torch.manual_seed(seed)
    model = Seq2Seq(config_of(system), SRC_V, TGT_V).eval()
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    if (bias := model.lexical_bias) is not None:
        fill_with_words(bias) if bias.n_words else bias.fill(*random_table())
    return model, TorchModel(model), onnx_model(model)


def check_same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [each.ids for each in found] == [each.ids for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)


def check(found: TranslationModel, expected: TranslationModel) -> None:
    """In batches and alone, in all ways, and in forced decoding."""
    for name, options in WAYS.items():
        n_best = 3 if name == "beam" else 1
        prefixes = None if name == "greedy" else PREFIXES
        given = {"n_best": n_best, "prefixes": prefixes}
        best = search(expected, SOURCES, options, **given)  # type: ignore[arg-type]
        for one, other in zip(search(found, SOURCES, options, **given), best, strict=True):  # type: ignore[arg-type]
            check_same(one, other)
    for number, source in enumerate(SOURCES):
        alone = search(found, [source], WAYS["greedy"])[0]
        check_same(alone, search(expected, SOURCES, WAYS["greedy"])[number])
    targets = [[5, 6], [], [7, 8, 9, 10], [4], [11, 4]]
    both = (score_batch(model, SOURCES, targets) for model in (found, expected))
    for log_probs, expected_log_probs in zip(*both, strict=True):
        assert log_probs == pytest.approx(expected_log_probs, abs=1e-4)


@each_system
def test_graphs_find_what_torch_finds(system: str) -> None:
    _, torch_model, onnx_model = models(system)
    check(onnx_model, torch_model)


def test_all_parts_of_models_are_tested() -> None:
    configs = [config_of(system) for system in SYSTEMS]
    for table, names in (
        (DECODERS, {each.decoder.kind for each in configs}),
        (CELLS, {each.decoder.cell for each in configs}),
        (CELLS, {each.encoder.cell for each in configs}),
        (READOUTS, {each.decoder.readout for each in configs}),
        (ATTENTIONS, {each.attention.kind for each in configs}),
        (SCORES, {each.attention.score for each in configs}),
        (BRIDGES, {each.bridge for each in configs}),
    ):
        assert names == {*table}
    for config in configs:
        values = {"name": "x", "data": {"source": {"path": "x"}}, "tokenizer": {"kind": "bpe"}}
        assert not check_rules(Config.model_validate({**values, "model": config.model_dump()}))


@pytest.mark.parametrize("system", ["lexical bias", "lexical bias, words, coverage"])
def test_terms(system: str) -> None:
    """They have other translations than the lexicon, and more of them."""
    terms: Terms = {
        (4, 5, 6, 7, 11): [((0, 1), (12, 13, 14)), ((3,), (5,))],
        (9,): [((0,), (10,))],
    }
    _, torch_model, onnx_model = models(system)
    expected, found = (model.with_terms(terms, 1e4) for model in (torch_model, onnx_model))
    assert expected is not None
    assert found is not None
    check(found, expected)
    ((best,),) = search(found, [[9]], WAYS["beam"])
    assert 10 in best.ids
    assert models("luong")[2].with_terms(terms, 1e4) is None


def test_an_ensemble() -> None:
    systems = ("luong", "bahdanau, coverage", "lexical bias")
    torch_models, onnx_models = zip(*(models(system)[1:] for system in systems), strict=True)
    check(Ensemble(onnx_models), Ensemble(torch_models))
    check(Ensemble([onnx_models[0], torch_models[1]]), Ensemble(torch_models[:2]))


@each_system
def test_the_best_words_are_the_most_probable_ones(system: str) -> None:
    _, torch_model, onnx_model = models(system)
    both: list[TranslationModel] = [torch_model, onnx_model]
    for model in both:
        memory, state = model.encode(SOURCES)
        vectors = model.step(np.full(len(SOURCES), 2), state, memory).vectors
        assert vectors.values.shape[0] == len(SOURCES)
        log_probs = model.log_probs(vectors)
        for k in (1, 4, TGT_V + 5):
            ids, numbers = model.best(vectors, k)
            assert ids.shape == (len(SOURCES), min(k, TGT_V))
            np.testing.assert_allclose(numbers, np.sort(log_probs)[:, ::-1][:, :k], atol=1e-6)
            np.testing.assert_allclose(np.take_along_axis(log_probs, ids, 1), numbers, atol=1e-6)


@each_system
def test_the_model_stays_as_it_is(system: str) -> None:
    model, *_ = models(system)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random, parts = torch.get_rng_state(), [*model.modules()]
    make_graphs(model)
    assert torch.equal(torch.get_rng_state(), random)  # a validation does not change the training
    assert [*model.modules()] == parts
    assert not any(part.training for part in parts)
    assert model.state_dict().keys() == before.keys()
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_graphs_have_no_tiny_weights() -> None:
    """Processors multiply numbers below 1e-38 a hundred times slower."""
    model = Seq2Seq(config_of("luong"), SRC_V, TGT_V).eval()
    model.src_embedding.weight.data[0], model.src_embedding.weight.data[4, 0] = 1e-39, 1e-12
    graph = onnx.load_from_string(make_graphs(model)["encoder.onnx"])
    (rows,) = (
        array
        for array in map(numpy_helper.to_array, graph.graph.initializer)
        if array.shape == model.src_embedding.weight.shape
    )
    assert not rows[0].any()
    assert rows[4, 0] == np.float32(1e-12)
    assert model.src_embedding.weight[0].any()

"""Exported graphs and the search of the exported translator against the model and nmt's own search,
for all kinds of models.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nmt.config.parts import (
    ATTENTIONS,
    BRIDGES,
    CELLS,
    DECODERS,
    OUTPUTS,
    READOUTS,
    SCORES,
)
from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.search import search
from nmt.extras.export.command import DECODING_KEYS
from nmt.extras.export.graphs import export_graphs
from nmt.extras.export.translate import Graph, Search
from nmt.model.lexical_bias import WordKeys
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import SPECIALS

SRC_V, TGT_V = 11, 13
SOURCES = [
    [4, 5, 6, 7, 8, 9],
    [9],
    [4, 4, 10],
    [],
    [5, 4, 7],
]  # none as long, or as many, as in the example of the export
OPTIONS = DecodingConfig(beam=4)
Graphs = tuple[Graph, Graph]

# Together they have every cell, score, kind of attention, decoder, readout, bridge and output.
CASES: dict[str, dict[str, Any]] = {
    "luong lstm, lexical bias": {"lexical_bias": 3, "attention": {"scaled": True}},
    "luong lstm, lexical bias of words": {
        "lexical_bias": 3,
        "lexical_words": 4,
        "attention": {"scaled": True},
    },
    "luong gru, input feeding, tied": {
        "encoder": {"cell": "gru"},
        "attention": {"score": "dot"},
        "decoder": {"cell": "gru", "hidden_size": 8, "input_feeding": True, "readout_size": 6},
        "bridge": "copy",
        "tie_embeddings": "target",
    },
    "bahdanau gru, coverage": {
        "encoder": {"cell": "gru"},
        "attention": {"score": "additive", "kind": "coverage"},
        "decoder": {"kind": "bahdanau", "cell": "gru", "readout": "maxout"},
        "bridge": "backward",
    },
    "bahdanau elman, local_p, heads": {
        "encoder": {"cell": "elman"},
        "attention": {"score": "concat", "kind": "local_p", "window": 2, "heads": 2},
        "decoder": {"kind": "bahdanau", "cell": "elman", "hidden_size": 6, "readout": "state"},
    },
    "conditional gru, heads": {
        "encoder": {"cell": "gru"},
        "attention": {"score": "additive", "heads": 2},
        "decoder": {
            "kind": "conditional",
            "cell": "gru",
            "hidden_size": 6,
            "readout": "deep",
            "layer_norm": True,
        },
    },
    "gnmt, local_m, adaptive": {
        "encoder": {"layers": 2, "residual": True, "layer_norm": True, "bidirectional": False},
        "attention": {"kind": "local_m", "window": 1},
        "decoder": {
            "kind": "gnmt",
            "layers": 3,
            "residual": True,
            "layer_norm": True,
            "readout": "deep",
        },
        "output": "adaptive",
        "cutoffs": [5, 9],
    },
    "luong concat_shared": {
        "encoder": {"layers": 2},
        "attention": {"score": "concat_shared"},
        "decoder": {"hidden_size": 8, "layers": 2, "readout": "concat"},
    },
    "luong without attention": {"attention": {"score": "none"}, "bridge": "zero"},
    "luong linear": {
        "encoder": {"bidirectional": False},
        "attention": {"score": "linear"},
    },
}


def build_model(**changes: Any) -> Seq2Seq:
    """With random weights that make confident, different predictions."""
    config: dict[str, Any] = {
        "embedding_size": 6,
        "encoder": {"hidden_size": 4},
        "decoder": {"hidden_size": 7},
        "dropout": 0.0,
    }
    for key, value in changes.items():
        config[key] = {**config.get(key, {}), **value} if isinstance(value, dict) else value
    torch.manual_seed(3)
    model = Seq2Seq(ModelConfig.model_validate(config), SRC_V, TGT_V).eval()
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    if model.lexical_bias is not None:
        size = model.lexical_bias.size
        ids = (
            3 * torch.arange(SRC_V).unsqueeze(1) + 2 * torch.arange(size)
        ) % TGT_V  # some for several source words
        model.lexical_bias.fill(ids, torch.rand(SRC_V, size) / size)
        if model.lexical_bias.n_words:
            tokens = [*SPECIALS, "▁a", "b", "c", "▁d", "e", "▁f", "."]
            word_keys = WordKeys(SRC_V)
            word_keys.fill(tokens, lowercase=True)
            _, keys = word_keys(torch.tensor([[4, 5, 6, 7, 8, 9]]))  # abc, de, f
            model.lexical_bias.fill_words(
                tokens, keys[0, [0, 3, 5]], (ids[:3] + 4) % TGT_V, torch.rand(3, size)
            )
    return model


def export(model: Seq2Seq, folder: Path) -> Graphs:
    export_graphs(model, folder / "encoder.onnx", folder / "step.onnx")
    return Graph(folder, "encoder.onnx", {}), Graph(folder, "step.onnx", {})


def check(model: Seq2Seq, exported: Graphs, options: DecodingConfig = OPTIONS) -> None:
    """Compare all n-best lists."""
    values = {key: getattr(options, key) for key in DECODING_KEYS} | {"words": TGT_V}
    results = Search(*exported, SOURCES, values, options.beam).run()
    expected = search(model, SOURCES, options, n_best=options.beam)
    assert [[hypothesis.ids for hypothesis in best] for best in results] == [
        [h.ids for h in best] for best in expected
    ]
    for best, expected_best in zip(results, expected, strict=True):
        assert [hypothesis.score for hypothesis in best] == pytest.approx(
            [h.score for h in expected_best], abs=1e-5
        )
        for hypothesis, reference in zip(best, expected_best, strict=True):
            np.testing.assert_allclose(hypothesis.attention, reference.attention, atol=1e-5)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Seq2Seq, Graphs]:
    model = build_model()
    return model, export(model, tmp_path_factory.mktemp("exported"))


@pytest.mark.parametrize("name", CASES)
def test_search_finds_the_same(name: str, tmp_path: Path) -> None:
    model = build_model(**CASES[name])
    check(model, export(model, tmp_path))


def test_the_cases_have_all_parts() -> None:
    defaults = ModelConfig()

    def used(section: str, key: str) -> set[Any]:
        return {
            case.get(section, {}).get(key, getattr(getattr(defaults, section), key))
            for case in CASES.values()
        }

    assert used("encoder", "cell") == used("decoder", "cell") == {*CELLS}
    assert used("attention", "score") == {*SCORES}
    assert used("attention", "kind") == {*ATTENTIONS}
    assert (used("decoder", "kind"), used("decoder", "readout")) == ({*DECODERS}, {*READOUTS})
    assert {case.get("bridge", defaults.bridge) for case in CASES.values()} == {*BRIDGES}
    assert {case.get("output", defaults.output) for case in CASES.values()} == {*OUTPUTS}


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 1},
        {"beam": 12},
        {"length_penalty": 0.0},
        {"length_formula": "wu", "length_penalty": 0.8},
        {"min_length_ratio": 1.5},
        {"max_length_ratio": 0.1, "forbid_unknown": True},
    ],
    ids=str,
)
def test_options_of_search(options: dict[str, Any], exported: tuple[Seq2Seq, Graphs]) -> None:
    check(*exported, OPTIONS.model_copy(update=options))

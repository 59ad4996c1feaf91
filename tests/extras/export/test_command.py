"""`nmt export`: what it writes and prints, and what it refuses; its graphs and its search against
the model and nmt's own search, for all kinds of models.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
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
from nmt.errors import ConfigError
from nmt.extras.export.graphs import export_graphs
from nmt.extras.export.program import to_program
from nmt.extras.export.settings import DECODING_KEYS
from nmt.extras.export.storage import compact
from nmt.extras.export.translate import Graph, Search, Translator
from nmt.model.lexical_bias import WordKeys
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import SPECIALS
from tests.conftest import Run


def test_the_folder(nmt: Run, run: Path) -> None:
    folder = run.with_name("run-onnx")
    result = nmt("export", run, "--beam", 3, "--set", "decoding.length_penalty=0.5")
    assert (result.status, result.err) == (0, "")
    size, install, command = result.out.splitlines()
    assert size.startswith(f"{folder}: ")
    assert install == f"pip install -r {folder / 'requirements.txt'}"
    assert command == f'python {folder / "translate.py"} "A sentence."'
    names = "encoder.onnx step.onnx settings.json src.vocab.txt tgt.vocab.txt translate.py"
    assert {path.name for path in folder.iterdir()} == {*names.split(), "requirements.txt"}
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    assert (settings["name"], settings["direction"], settings["precision"]) == (
        "toy",
        "en-de",
        "float32",
    )
    assert (settings["decoding"]["beam"], settings["decoding"]["length_penalty"]) == (3, 0.5)
    packages = (folder / "requirements.txt").read_text().split()
    assert packages == [
        "numpy",
        "onnxruntime",
        f"spacy=={settings['tokenizers']['src']['version']}",
    ]
    again = nmt("export", run)
    assert (again.status, again.err) == (
        1,
        f"nmt: {folder}: exists; delete it, or choose another folder with -o\n",
    )


def test_a_bundle(nmt: Run, run: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "model.nmt"
    assert nmt("share", "bundle", run, "-o", bundle).status == 0
    assert nmt("export", bundle).status == 0
    assert Translator(tmp_path / "model-onnx").translate([""]) == [""]


@pytest.mark.parametrize(
    ("key", "value", "only"),
    [
        ("method", "sampling", "beam"),
        ("no_repeat_ngram", 3, "null"),
        ("coverage_penalty", 0.2, 0.0),
        ("neighbors.pairs", 8, 0),
        ("rerank.run", "de-en", "null"),
    ],
)
def test_settings_that_it_refuses(
    nmt: Run, folder: Path, tmp_path: Path, key: str, value: object, only: object
) -> None:
    options = ("-o", tmp_path / "new", "--set", f"decoding.{key}={value}")
    message = f"decoding.{key}: {value} cannot be exported; add --set decoding.{key}={only}"
    nmt.refuses(f"nmt: {message}\n", "export", folder / "run", *options)
    assert not (tmp_path / "new").exists()


def test_onnxruntime_sends_no_telemetry(tmp_path: Path) -> None:
    """Otherwise it makes folders in the home of the user as soon as it is imported."""
    silent = ("ORT_", "CI", "GITHUB_ACTIONS", "TF_BUILD", "BUILD_", "XDG_")  # with these anyway
    environment = {name: value for name, value in os.environ.items() if not name.startswith(silent)}
    environment["HOME"] = str(tmp_path)
    code = "import nmt.extras.export.command, onnxruntime.quantization"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [
        path.name for path in tmp_path.rglob("*") if "icrosoft" in path.name or "onnx" in path.name
    ] == []


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


# Graphs as programs for the page, and weights in fewer bytes


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("graphs")
    model = build_model(**CASES["luong lstm, lexical bias of words"], embedding_size=500)
    export_graphs(model, folder / "encoder.onnx", folder / "step.onnx")
    return folder / "encoder.onnx", folder / "step.onnx"


def test_quantization() -> None:
    weights = np.random.default_rng(1).normal(size=(2, 5, 40)).astype(np.float32)
    weights[1, 2] = 0
    weights[0, 1] *= 1000
    integers, scales = compact(weights)
    assert scales is not None
    assert (integers.dtype, scales.dtype, scales.shape) == (np.int8, np.float32, (2, 5, 1))
    assert (np.abs(integers * scales - weights) <= 0.5001 * scales).all()
    assert integers.max() == -integers.min() == 127


def test_programs(graphs: tuple[Path, Path]) -> None:
    encoder, step = map(onnx.load, graphs)
    program, data = to_program(encoder, "float32")
    assert program["inputs"] == ["src", "src_lengths"]
    assert "logits" not in program["outputs"]
    assert len(to_program(encoder, "int8")[1]) < 0.3 * len(data)
    program, _ = to_program(step, "int8")
    (topk,) = (node for node in program["nodes"] if "best_ids" in node[2])
    assert program["outputs"][-1] == "logits"
    assert ("Identity", topk[1][:1], ["logits"], {}) in program["nodes"]


def test_an_operator_that_it_lacks() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Sinh", ["x"], ["y"])], "graph", [x], [y])
    with pytest.raises(ConfigError, match=r"^Sinh: a page cannot compute this operator of the"):
        to_program(helper.make_model(graph), "int8")

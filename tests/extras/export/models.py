"""Small models, which together have all parts."""

from typing import Any

import torch
from torch import nn

from nmt.config.schema import ModelConfig
from nmt.model.lexical_bias import WordKeys
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import SPECIALS

SRC_V, TGT_V = 11, 13
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

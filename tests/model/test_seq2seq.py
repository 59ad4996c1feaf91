"""The whole model: padding changes nothing, and the fast path, the loop and single steps agree."""

from itertools import product
from typing import Any

import pytest
import torch

from nmt.config.parts import CELLS
from nmt.config.schema import ModelConfig
from nmt.model.seq2seq import Decoded, Seq2Seq

SRC_V, TGT_V = 11, 13
SRC_LENGTHS = torch.tensor([5, 2, 4])

KINDS: dict[str, dict[str, Any]] = {
    "luong": {"decoder": {"kind": "luong", "hidden_size": 7}},
    "luong input feeding": {
        "decoder": {"kind": "luong", "hidden_size": 7, "input_feeding": True, "readout_size": 5}
    },
    "luong concat readout": {"decoder": {"kind": "luong", "hidden_size": 7, "readout": "concat"}},
    "luong without attention": {
        "decoder": {"kind": "luong", "hidden_size": 7},
        "attention": {"score": "none"},
    },
    "bahdanau": {
        "decoder": {"kind": "bahdanau", "hidden_size": 7, "readout": "state"},
        "attention": {"score": "additive"},
    },
    "bahdanau deep": {
        "decoder": {"kind": "bahdanau", "hidden_size": 7, "readout": "deep"},
        "attention": {"score": "additive"},
    },
    "bahdanau maxout": {
        "decoder": {"kind": "bahdanau", "hidden_size": 7, "readout": "maxout"},
        "attention": {"score": "concat"},
    },
    "stacked": {
        "encoder": {"hidden_size": 4, "layers": 2},
        "decoder": {"hidden_size": 7, "layers": 3},
    },
    "tied": {"decoder": {"hidden_size": 7}, "tie_embeddings": "target"},
    "normalized and residual": {
        "encoder": {"hidden_size": 4, "layers": 3, "layer_norm": True, "residual": True},
        "decoder": {"hidden_size": 7, "layers": 2, "layer_norm": True, "residual": True},
    },
    "bahdanau normalized and residual": {
        "decoder": {
            "kind": "bahdanau",
            "readout": "deep",
            "hidden_size": 7,
            "layers": 2,
            "layer_norm": True,
            "residual": True,
        },
    },
    "luong local_m": {"attention": {"kind": "local_m", "window": 1}, "decoder": {"hidden_size": 7}},
    "luong local_p": {
        "attention": {"kind": "local_p", "window": 2},
        "decoder": {"hidden_size": 7, "input_feeding": True},
    },
    "luong coverage": {
        "attention": {"kind": "coverage", "score": "additive"},
        "decoder": {"hidden_size": 7},
    },
    "bahdanau coverage": {
        "attention": {"kind": "coverage", "score": "additive"},
        "decoder": {"kind": "bahdanau", "readout": "maxout", "hidden_size": 7},
    },
    "conditional": {
        "decoder": {"kind": "conditional", "readout": "deep", "hidden_size": 7},
        "attention": {"score": "additive"},
    },
    "conditional normalized, coverage": {
        "attention": {"kind": "coverage", "score": "additive"},
        "decoder": {
            "kind": "conditional",
            "readout": "state",
            "hidden_size": 7,
            "layer_norm": True,
        },
    },
    "gnmt": {"decoder": {"kind": "gnmt", "readout": "deep", "hidden_size": 7, "layers": 2}},
    "gnmt normalized and residual": {
        "decoder": {
            "kind": "gnmt",
            "hidden_size": 7,
            "layers": 3,
            "layer_norm": True,
            "residual": True,
        },
    },
    "gnmt coverage": {
        "attention": {"kind": "coverage", "score": "additive"},
        "decoder": {"kind": "gnmt", "readout": "state", "hidden_size": 7, "layers": 2},
    },
    "gnmt local_m": {
        "attention": {"kind": "local_m", "window": 1},
        "decoder": {"kind": "gnmt", "hidden_size": 6, "layers": 2},
    },
    "bahdanau local_p": {
        "attention": {"kind": "local_p", "score": "additive"},
        "decoder": {"kind": "bahdanau", "readout": "state", "hidden_size": 6},
    },
}
EXTREMES = [
    *product(KINDS, CELLS, [True]),
    *product(["luong", "bahdanau", "conditional", "gnmt", "stacked"], ["gru", "elman"], [False]),
]


def make(kind: str, cell: str, *, bidirectional: bool = True, **options: Any) -> Seq2Seq:
    torch.manual_seed(2)
    values: dict[str, Any] = {
        "embedding_size": 6,
        "encoder": {"hidden_size": 4},
        "dropout": 0.0,
        **options,
        **KINDS[kind],
    }
    values["encoder"] = {**values["encoder"], "cell": cell, "bidirectional": bidirectional}
    values["decoder"] = {**values["decoder"], "cell": cell}
    return Seq2Seq(ModelConfig.model_validate(values), SRC_V, TGT_V).double()


def make_batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randint(4, SRC_V, (3, 5)), torch.randint(4, TGT_V, (3, 6))


def loss_and_gradients(
    model: Seq2Seq, decoded: Decoded, tgt: torch.Tensor
) -> dict[str, torch.Tensor]:
    """By the names of the parameters."""
    model.zero_grad()
    loss, _ = model.output.loss(decoded.vectors.flatten(0, 1), tgt.flatten())
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss, **gradients}


@pytest.mark.parametrize(("kind", "cell", "bidirectional"), EXTREMES)
def test_a_sentence_in_a_padded_batch_is_as_if_alone(
    kind: str, cell: str, bidirectional: bool
) -> None:
    """Its vectors and attention are; the loss and the gradient of a batch are sums."""
    model = make(kind, cell, bidirectional=bidirectional)
    src, tgt = make_batch()

    def decode(rows: list[int], width: int) -> tuple[Decoded, dict[str, torch.Tensor]]:
        decoded: Decoded = model(src[rows, :width], SRC_LENGTHS[rows], tgt[rows])
        return decoded, loss_and_gradients(model, decoded, tgt[rows])

    together, values = decode([0, 1, 2], 5)
    sums = dict.fromkeys(values, torch.zeros((), dtype=torch.double))
    for row, length in enumerate(SRC_LENGTHS.tolist()):
        alone, its_values = decode([row], length)
        sums = {name: total + its_values[name] for name, total in sums.items()}
        attention = together.attention[row : row + 1]
        for one, two in (
            (together.vectors[row : row + 1], alone.vectors),
            (attention[..., :length], alone.attention),
        ):
            torch.testing.assert_close(one, two, atol=1e-12, rtol=0)
        assert (attention[..., length:] == 0).all()
    torch.testing.assert_close(values, sums, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("kind", "cell"), list(product(KINDS, CELLS)))
def test_the_loop_fed_the_reference_has_the_loss_and_gradients_of_the_fast_path(
    kind: str, cell: str
) -> None:
    """The loop is that of scheduled sampling."""
    model = make(kind, cell)
    src, tgt = make_batch()
    memory = model.encode(src, SRC_LENGTHS)
    always = torch.ones_like(tgt, dtype=torch.bool)
    looped = model._sample(tgt, always, model.start(memory), memory)
    results = []
    for decoded in (model(src, SRC_LENGTHS, tgt), looped):
        gradients = loss_and_gradients(model, decoded, tgt)
        results.append({"weights": decoded.attention, **gradients})
    torch.testing.assert_close(*results, atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_each_sentence_follows_its_own_forcing_mask(kind: str) -> None:
    """The first is fed the reference throughout, the second its own outputs, the third both."""
    model = make(kind, "gru")
    src, tgt = make_batch()
    forcing_mask = torch.tensor(
        [[False, True, True, True, True, True], [False] * 6, [True, False, True, True, False, True]]
    )
    together = model(src, SRC_LENGTHS, tgt, forcing_mask)
    torch.testing.assert_close(
        together.vectors[:1], model(src, SRC_LENGTHS, tgt).vectors[:1], atol=1e-12, rtol=0
    )
    predictions = model.output(together.vectors).argmax(-1)
    fed = torch.where(forcing_mask[:, 1:], tgt[:, 1:], predictions[:, :-1])
    fed = torch.cat([tgt[:, :1], fed], 1)
    expected = model(src, SRC_LENGTHS, fed)
    torch.testing.assert_close(together.vectors, expected.vectors, atol=1e-10, rtol=0)
    torch.testing.assert_close(together.attention, expected.attention, atol=1e-10, rtol=0)


def test_dropout_acts_only_in_training() -> None:
    model = make("stacked", "gru", dropout=0.5)
    src, tgt = make_batch()
    assert not torch.equal(
        model(src, SRC_LENGTHS, tgt).vectors, model(src, SRC_LENGTHS, tgt).vectors
    )
    model.eval()
    assert torch.equal(model(src, SRC_LENGTHS, tgt).vectors, model(src, SRC_LENGTHS, tgt).vectors)


def test_each_place_has_its_own_dropout_rate() -> None:
    rates: dict[str, Any] = {
        "src_embedding_dropout": 0.25,
        "encoder_output_dropout": 0.75,
    }
    model = make("luong input feeding", "lstm", dropout=0.5, **rates)
    ids = torch.full((200, 10), 5)
    for embedding, rate in (
        (model.src_embedding, 0.25),
        (model.tgt_embedding, 0.5),
    ):  # the common one
        vectors = embedding(ids)
        assert (vectors == 0).float().mean() == pytest.approx(rate, abs=0.03)
        kept = embedding.weight[5].expand_as(vectors) / (1 - rate)
        torch.testing.assert_close(vectors, torch.where(vectors == 0, 0, kept))
    torch.manual_seed(1)
    memory = model.encode(ids, torch.full((200,), 10))
    assert (memory.values == 0).float().mean() == pytest.approx(0.75, abs=0.03)
    assert (memory.summary.vector == 0).sum() == 0  # the bridge reads the whole state
    assert (model.eval().encode(ids, torch.full((200,), 10)).values == 0).sum() == 0


def test_tied_embeddings_are_one_parameter() -> None:
    for tying in ("target", "all"):
        model = Seq2Seq(ModelConfig.model_validate({"tie_embeddings": tying}), 20, 20)
        weight = model.get_parameter("output.logits.weight")
        assert model.tgt_embedding.weight is weight
        assert (model.src_embedding.weight is weight) == (tying == "all")


@pytest.mark.parametrize("tying", ["none", "target", "all"])
def test_embeddings_have_one_standard_deviation_however_tied(tying: str) -> None:
    torch.manual_seed(1)
    model = Seq2Seq(ModelConfig.model_validate({"tie_embeddings": tying}), 500, 500).eval()
    for embedding in (model.src_embedding, model.tgt_embedding):
        assert float(embedding(torch.arange(500)).detach().std()) == pytest.approx(0.5, rel=0.02)
    assert float(model.get_parameter("output.logits.weight").detach().std()) < 0.1


def test_residual_connections_and_normalization_by_hand() -> None:
    """Two layers of the encoder, from the equations: LN after the layer, the sum after that,
    neither in the last state.
    """
    model = make("normalized and residual", "lstm")
    embedded = torch.randn(1, 4, 6, dtype=torch.float64)
    below, hiddens = embedded, []
    for index, (rnn, norm) in enumerate(
        zip(model.encoder.layers, model.encoder.norms, strict=True)
    ):
        outputs, (hidden, _) = rnn(below)
        mean, variance = (
            outputs.mean(-1, keepdim=True),
            outputs.var(-1, unbiased=False, keepdim=True),
        )
        above = (outputs - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias
        below = below + above if index else above
        hiddens.append(hidden.transpose(0, 1).flatten(1))
    values, summary = model.encoder(embedded, torch.tensor([4]))
    torch.testing.assert_close(values, below, atol=1e-12, rtol=0)
    for (last, _), expected in zip(summary.states.layers, hiddens, strict=True):
        torch.testing.assert_close(last, expected, atol=1e-12, rtol=0)

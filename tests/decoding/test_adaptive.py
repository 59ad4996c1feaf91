"""Search with an adaptive output layer, which skips clusters, against the same search over all
words.
"""

from typing import Any

import pytest
import torch

from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.fast import for_search
from nmt.decoding.search import search
from nmt.model.output import Adaptive, topk_log_probs
from nmt.model.seq2seq import Seq2Seq


def model_of(seed: int) -> Seq2Seq:
    torch.manual_seed(seed)
    sizes = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16}}
    model = Seq2Seq(
        ModelConfig.model_validate({**sizes, "output": "adaptive", "cutoffs": [8, 20]}), 40, 60
    ).eval()
    for parameter in model.parameters():
        parameter.data.mul_(2.5)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 1},
        {"beam": 5},
        {"beam": 5, "no_repeat_ngram": 2, "min_length_ratio": 1.0},
        {"beam": 4, "forbid_unknown": True, "coverage_penalty": 0.2},
        {"beam": 40},
    ],
    ids=str,
)
@pytest.mark.parametrize("prefixes", [None, [[5, 50]] * 12], ids=["free", "prefix"])
def test_the_same_results_as_a_search_over_all_words(
    options: dict[str, Any], prefixes: list[list[int]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = [[4 + (7 * i + 3 * j) % 36 for j in range(1 + i % 5)] for i in range(12)]
    for seed in range(2):
        model = for_search(model_of(seed))
        n_best = min(3, options["beam"])
        config = DecodingConfig.model_validate(options)
        lazy = search(model, src, config, n_best=n_best, prefixes=prefixes)
        with monkeypatch.context() as patch:
            patch.setattr(
                Adaptive,
                "topk_log_probs",
                lambda self, vectors, k, _: topk_log_probs(self.log_probs(vectors), k),
            )
            whole = search(model, src, config, n_best=n_best, prefixes=prefixes)
        assert [[one.ids for one in best] for best in lazy] == [
            [one.ids for one in best] for best in whole
        ]
        for best, expected in zip(lazy, whole, strict=True):
            assert [one.score for one in best] == pytest.approx(
                [one.score for one in expected], abs=1e-5
            )


def test_most_clusters_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(1)
    assert isinstance(model.output, Adaptive)
    rows = [0, 0, 0]
    model.output.softmax.head.register_forward_hook(
        lambda _, inputs, __: rows.__setitem__(0, rows[0] + len(inputs[0]))
    )
    for cluster, tail in enumerate(model.output.softmax.tail, 1):
        tail.register_forward_hook(
            lambda _, inputs, __, at=cluster: rows.__setitem__(at, rows[at] + len(inputs[0]))
        )
    search(model, [[4, 5, 6, 7]] * 8, DecodingConfig(beam=5))
    assert 0 < rows[1] + rows[2] < 1.2 * rows[0]


def test_clusters_are_searched_if_the_whole_head_is_banned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hypothesis is not forced to end while there are allowed words below the threshold."""
    model = model_of(1)
    options = DecodingConfig(beam=2, forbid_unknown=True, min_length_ratio=1.0)
    monkeypatch.setattr(
        Adaptive,
        "topk_log_probs",
        lambda self, vectors, k, _: topk_log_probs(self.log_probs(vectors)[:, :4], k),
    )
    for source in ([4, 5, 6], [7] * 8):
        for hypothesis in search(model, [source], options, n_best=2)[0]:
            assert len(hypothesis.ids) >= len(source)
            assert min(hypothesis.ids) >= 4

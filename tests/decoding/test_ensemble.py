"""An ensemble: averaged probabilities and attention."""

import numpy as np
import torch

from nmt.config.schema import DecodingConfig
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.search import search
from tests.decoding.test_search import make_model, make_sources


def test_the_same_model_twice_is_the_model() -> None:
    model, sources = make_model(), make_sources()
    single = search(model, sources, DecodingConfig(beam=3), n_best=3)
    double = search(Ensemble([model, model]).eval(), sources, DecodingConfig(beam=3), n_best=3)
    for alone, together in zip(single, double, strict=True):
        assert [h.ids for h in alone] == [h.ids for h in together]
        np.testing.assert_allclose([h.log_prob for h in alone], [h.log_prob for h in together])


def test_probabilities_and_attention_are_averaged() -> None:
    models = [make_model("global"), make_model("gru, bahdanau", 5), make_model("adaptive", 6)]
    (hypothesis,) = search(Ensemble(models).eval(), [[4, 7, 5]], DecodingConfig(beam=1))[0]
    src, lengths = torch.tensor([[4, 7, 5, 3]]), torch.tensor([4])
    output = [*hypothesis.ids, 3][: len(hypothesis.token_log_probs)]
    with torch.inference_mode():
        decoded = [model(src, lengths, torch.tensor([[2, *output[:-1]]])) for model in models]
        p = np.mean(
            [
                model.output.log_probs(result.vectors).exp()[0].numpy()
                for model, result in zip(models, decoded, strict=True)
            ],
            0,
        )
    np.testing.assert_allclose(
        hypothesis.token_log_probs, np.log(p[range(len(output)), output]), atol=1e-9
    )
    np.testing.assert_allclose(
        hypothesis.attention,
        np.mean([result.attention[0].numpy() for result in decoded], 0),
        atol=1e-6,
    )

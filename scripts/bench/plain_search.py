"""The search that attention models are taught with, to measure against: a sentence, a hypothesis, a step at a time.

It ranks as `nmt.decoding.search` does with a length penalty of 1, so that both find the same.
"""

from dataclasses import dataclass

import numpy as np
import torch

from nmt.data.batching import pad_sources
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.model.decoder import DecoderState
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, PAD, SOS


@dataclass(frozen=True)
class Partial:
    """A hypothesis under way."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    rows: tuple[torch.Tensor, ...]
    state: DecoderState

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs)

    @property
    def score(self) -> float:
        return self.log_prob / len(self.ids)


@torch.inference_mode()
def translate_plainly(translator: Translator, text: str) -> Translation:
    """The best hypothesis of a beam search that goes on until no live one can win."""
    model, options = translator.model, translator.options
    assert isinstance(model, Seq2Seq), "not an ensemble"
    tokens = translator.src_tokenizer.split(text)
    if not tokens:
        return Translation(text)
    padded, lengths = pad_sources([translator.src_vocabulary.ids(tokens)])
    memory = model.encode(padded, lengths)
    longest = int(options.max_length_ratio * int(lengths)) + 10
    live, ended = [Partial((), (), (), model.start(memory))], []
    while live:
        candidates = []
        for partial in live:
            last = torch.tensor([partial.ids[-1] if partial.ids else SOS])
            output = model.step(last, partial.state, memory)
            log_probs = torch.log_softmax(model.compute_logits(output.vector)[0], 0)
            log_probs[[PAD, SOS]] = float("-inf")
            best = log_probs.topk(min(options.beam, len(log_probs)))
            for log_prob, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                candidates.append(
                    Partial((*partial.ids, token), (*partial.log_probs, log_prob), (*partial.rows, output.attention), output.state)
                )
        kept = sorted(candidates, key=lambda one: -one.log_prob)[: options.beam]
        ended += [one for one in kept if one.ids[-1] == EOS or len(one.ids) == longest]
        live = [one for one in kept if one.ids[-1] != EOS and len(one.ids) < longest]
        if live and ended and max(one.score for one in ended) >= live[0].log_prob / longest:
            break
    best_end = max(ended, key=lambda one: (one.ids[-1] == EOS, one.score))
    return translator._to_translation(text, tokens, _finish(best_end))


def _finish(end: Partial) -> Hypothesis:
    complete = end.ids[-1] == EOS
    attention: np.ndarray = torch.cat(end.rows).numpy()
    return Hypothesis(
        list(end.ids[:-1] if complete else end.ids), end.log_prob, list(end.log_probs), end.score, attention, complete
    )

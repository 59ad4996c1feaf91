"""The beam search of the tutorials, as a baseline: one sentence, one hypothesis, one step at a
time.

It ranks like `nmt.decoding.search` with a length penalty of 1, so both give the same translations.
"""

from dataclasses import dataclass

import numpy as np
import torch

from nmt.data.batches import pad_sources
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.model.decoder import DecoderState
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, PAD, SOS


@dataclass(frozen=True)
class Partial:
    """An open hypothesis."""

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
    """The best hypothesis of a beam search that stops when no open hypothesis can win."""
    model, options = translator.model, translator.options
    assert isinstance(model, Seq2Seq), "not an ensemble"
    tokens = translator.src_tokenizer.split(text)
    if not tokens:
        return Translation(text)
    padded, lengths = pad_sources([translator.src_vocabulary.ids(tokens)])
    memory = model.encode(padded, lengths)
    max_length = int(options.max_length_ratio * int(lengths)) + 10
    open_hypotheses, finished = [Partial((), (), (), model.start(memory))], []
    while open_hypotheses:
        candidates = []
        for partial in open_hypotheses:
            last = torch.tensor([partial.ids[-1] if partial.ids else SOS])
            output = model.step(last, partial.state, memory)
            log_probs = torch.log_softmax(model.compute_logits(output.vector)[0], 0)
            log_probs[[PAD, SOS]] = float("-inf")
            top = log_probs.topk(min(options.beam, len(log_probs)))
            for log_prob, token in zip(top.values.tolist(), top.indices.tolist(), strict=True):
                candidates.append(
                    Partial(
                        (*partial.ids, token),
                        (*partial.log_probs, log_prob),
                        (*partial.rows, output.attention),
                        output.state,
                    )
                )
        beam = sorted(candidates, key=lambda candidate: -candidate.log_prob)[: options.beam]
        finished += [
            candidate
            for candidate in beam
            if candidate.ids[-1] == EOS or len(candidate.ids) == max_length
        ]
        open_hypotheses = [
            candidate
            for candidate in beam
            if candidate.ids[-1] != EOS and len(candidate.ids) < max_length
        ]
        if (
            open_hypotheses
            and finished
            and max(end.score for end in finished) >= open_hypotheses[0].log_prob / max_length
        ):
            break
    best = max(finished, key=lambda end: (end.ids[-1] == EOS, end.score))
    return translator._to_translation(text, tokens, _finish(best))


def _finish(end: Partial) -> Hypothesis:
    complete = end.ids[-1] == EOS
    attention: np.ndarray = torch.cat(end.rows).numpy()
    return Hypothesis(
        list(end.ids[:-1] if complete else end.ids),
        end.log_prob,
        list(end.log_probs),
        end.score,
        attention,
        complete,
    )

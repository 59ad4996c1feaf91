"""A user's translation memory, without training: exact matches, and similar pairs to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nmt.data.reading import Pair
from nmt.decoding.translator import Translation, Translator
from nmt.extras.neighbors.model import NeighborModel
from nmt.text.tokenizers import normalize
from nmt.text.vocabulary import PAD, UNK

MAX_SHOWN = 3  # of the similar pairs


def with_memory(translator: Translator) -> Translator:
    """A translator that knows the memory at which its model looks, if it looks at one."""
    for part in translator.model.modules():
        if isinstance(part, NeighborModel) and part.texts:
            return MemoryTranslator(translator, part)
    return translator


class MemoryTranslator(Translator):
    """A translator that knows the texts of the memory at which its model looks, and names the
    similar pairs.
    """

    def __init__(self, translator: Translator, model: NeighborModel) -> None:
        super().__init__(**translator.arguments)
        self.pairs, self.similar = [*model.texts], model.similar
        self.exact = dict[str, str]()  # of several translations the most frequent, then the first
        for (src, tgt), _ in model.texts.most_common():
            self.exact.setdefault(src, tgt)

    def known(self, text: str) -> Translation | None:
        """An exact match. All its tokens attend to <eos>: no words are aligned."""
        source = normalize(text)
        if (target := self.exact.get(source)) is None:
            return None
        src_tokens, tokens = self.src_tokenizer.split(source), self.tgt_tokenizer.split(target)
        attention = np.zeros((len(tokens) + 1, len(src_tokens) + 1), np.float32)
        attention[:, -1] = 1
        return Translation(
            source=text,
            text=target,
            src_tokens=tuple(src_tokens),
            tokens=tuple(tokens),
            token_log_probs=(0.0,) * len(attention),
            attention=attention,
            facts=_facts("exact", [((source, target), 1.0)]),
            is_known=True,
        )

    def _judged(self, translation: Translation) -> Translation:
        translation = super()._judged(translation)
        # An unknown word is like no other one: no sentence has <pad>.
        ids = [PAD if i == UNK else i for i in self.src_vocabulary.ids(translation.src_tokens)]
        found = [*zip(*self.similar.rank(ids, MAX_SHOWN), strict=True)]
        if not found:
            return translation
        similar = [(self.pairs[index], float(cosine)) for index, cosine in found]
        return replace(translation, facts={**translation.facts, **_facts("similar", similar)})


def _facts(match: str, pairs: Sequence[tuple[Pair, float]]) -> Mapping[str, Any]:
    listed = [
        {"source": src, "translation": tgt, "similarity": round(similarity, 3)}
        for (src, tgt), similarity in pairs
    ]
    return {"memory": {"match": match, "pairs": listed}}

"""A user's translation memory, without training: exact matches, and similar pairs to look at."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt.data.reading import Pair
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.extras.neighbors.model import NeighborModel
from nmt.text.tokenizers import normalize
from nmt.text.vocabulary import PAD, UNK

MAX_SHOWN = 3  # of the similar pairs


def memory(translator: Translator) -> "NeighborMemory | None":
    """The memory at which the model of a translator looks, if it looks at one."""
    model = translator.model
    for part in model.models if isinstance(model, Ensemble) else [model]:
        if isinstance(part, NeighborModel) and part.texts:
            return NeighborMemory(translator, part)
    return None


class NeighborMemory:
    """Knows the texts of the memory at which the model of a translator looks, and names the similar
    pairs.
    """

    def __init__(self, translator: Translator, model: NeighborModel) -> None:
        self._translator = translator
        self._pairs = [*model.texts]
        self._similar = model.similar
        self._exact = dict[str, str]()  # of several translations the most frequent, then the first
        for (src, tgt), _ in model.texts.most_common():
            self._exact.setdefault(src, tgt)

    def exact(self, text: str) -> Translation | None:
        """An exact match. All its tokens attend to <eos>: no words are aligned."""
        source = normalize(text)
        target = self._exact.get(source)
        if target is None:
            return None
        src_tokens = self._translator.src_tokenizer.split(source)
        tokens = self._translator.tgt_tokenizer.split(target)
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

    def similar(self, translation: Translation) -> Mapping[str, Any]:
        """The most similar pairs, with their similarity; nothing if there are none."""
        # An unknown word is like no other one: no sentence has <pad>.
        ids = self._translator.src_vocabulary.ids(translation.src_tokens)
        known = [PAD if i == UNK else i for i in ids]
        found = [*zip(*self._similar.rank(known, MAX_SHOWN), strict=True)]
        if not found:
            return {}
        return _facts("similar", [(self._pairs[index], float(cosine)) for index, cosine in found])


def _facts(match: str, pairs: Sequence[tuple[Pair, float]]) -> Mapping[str, Any]:
    listed = [
        {"source": src, "translation": tgt, "similarity": round(similarity, 3)}
        for (src, tgt), similarity in pairs
    ]
    return {"memory": {"match": match, "pairs": listed}}

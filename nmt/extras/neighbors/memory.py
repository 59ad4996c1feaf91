"""A user's translation memory, without training: exact matches, and similar pairs to look at."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.schema import Config
from nmt.config.section import key_of
from nmt.data.corpus import encode_pairs
from nmt.data.reading import Pair
from nmt.decoding.ensemble import Ensemble, Member
from nmt.decoding.translator import Translation, Translator
from nmt.errors import ConfigError
from nmt.extras.init.pairs import read_pairs
from nmt.extras.neighbors.keys import NeighborsConfig
from nmt.extras.neighbors.model import NeighborModel, SimilarSentences
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_tokenizers, load_vocabularies
from nmt.text.tokenizers import Tokenizer, normalize
from nmt.text.vocabulary import Vocabulary

PAIRS = 16  # to look at, if decoding.neighbors.pairs is 0
MAX_SHOWN = 3  # of the similar pairs


class Memory:
    """Pairs of sentences.

    Args:
        pairs: normalized; some may be the same.

    Attributes:
        pairs: the different ones. encoded: as ids. similar: finds their sources.
        exact: the translation of each source: the most frequent one; of equals, the first.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        tokenizers: tuple[Tokenizer, Tokenizer],
        vocabularies: tuple[Vocabulary, Vocabulary],
    ) -> None:
        counts = Counter(pairs)
        self.pairs, self.exact = [*counts], dict[str, str]()
        for (src, tgt), _ in counts.most_common():
            self.exact.setdefault(src, tgt)
        self.encoded = encode_pairs(self.pairs, tokenizers, vocabularies)
        self.similar = SimilarSentences(self.encoded.src, len(vocabularies[0]))


class MemoryModel(NeighborModel):
    """The model of a member that looks at the similar pairs of a memory."""

    def __init__(self, member: Member, memory: Memory, options: NeighborsConfig) -> None:
        assert isinstance(member.model, Seq2Seq)
        super().__init__(member.trained, member.model, memory.encoded, memory.similar, options)
        self.memory = memory


def wrap_with(path: Path, members: Sequence[Member], run: Path, config: Config) -> Sequence[Member]:
    """The members with a memory to look at.

    Raises:
        ConfigError: a member does not know the probabilities of all words.
        DataError: the memory cannot be read, has other languages, or holds no pair.
    """
    if any(member.model.choose_words is not None for member in members):
        raise ConfigError("--memory may need any word; set decoding.shortlist to 0")
    pairs = read_pairs(path, (config.data.src_language, config.data.tgt_language))
    memory = Memory(pairs, load_tokenizers(run, config), load_vocabularies(run))
    options = key_of(config.decoding, "neighbors", NeighborsConfig)
    options = options.model_copy(update={"pairs": options.pairs or PAIRS})
    return [Member(each.trained, MemoryModel(each, memory, options)) for each in members]


class MemoryTranslator(Translator):
    """A translator that knows the texts of the memory at which its model looks, and names the
    similar pairs.
    """

    def __init__(self, translator: Translator) -> None:
        super().__init__(
            translator.model,
            tokenizers=translator.tokenizers,
            vocabularies=translator.vocabularies,
            options=translator.options,
            words=translator.words,
            rankers=translator.rankers,
            confidence=translator.confidence,
        )
        model = self.model.members[0] if isinstance(self.model, Ensemble) else self.model
        assert isinstance(model, MemoryModel)
        self.memory = model.memory

    def known(self, text: str) -> Translation | None:
        """An exact match. All its tokens attend to <eos>: no words are aligned."""
        source = normalize(text)
        if (target := self.memory.exact.get(source)) is None:
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
        ids = self.src_vocabulary.ids(translation.src_tokens)
        found = [*zip(*self.memory.similar.rank(ids, MAX_SHOWN), strict=True)]
        if not found:
            return translation
        similar = [(self.memory.pairs[index], float(cosine)) for index, cosine in found]
        return replace(translation, facts={**translation.facts, **_facts("similar", similar)})


def _facts(match: str, pairs: Sequence[tuple[Pair, float]]) -> Mapping[str, Any]:
    listed = [
        {"source": src, "translation": tgt, "similarity": round(similarity, 3)}
        for (src, tgt), similarity in pairs
    ]
    return {"memory": {"match": match, "pairs": listed}}

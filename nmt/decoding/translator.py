"""The translator: raw text in, raw text out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.data.batching import pad_sources
from nmt.decoding.batch_runner import run_batches
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.search import Sentence, SpecialIds, search
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translation import Translation
from nmt.decoding.unknown_words import (
    UNKNOWN,
    Replacement,
    UnknownWords,
    replace_unknown,
    surface_forms,
    with_replacements,
)
from nmt.errors import ConfigError, DataError
from nmt.model.translation_model import TranslationModel
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

# Of a batch: source tokens with padding, as often as there are hypotheses to look at them. What search remembers grows with it.
MOST_TOKENS = 1 << 15
LEAST_TOKENS = 16  # what a shorter sentence counts for, so that there are not too many hypotheses whose next words are scored
SPECIAL_IDS = SpecialIds(sos=SOS, eos=EOS, forbidden=(PAD, SOS))
WITHOUT_UNKNOWN = replace(SPECIAL_IDS, forbidden=(PAD, SOS, UNK))
NO_LEXICON = UnknownWords()


class Translator:
    """A model, or an ensemble, with the tokenizers and vocabularies of its two languages. It is put into evaluation mode.

    Several threads may use it at once.
    """

    def __init__(
        self,
        model: TranslationModel,
        *,
        tokenizers: tuple[Tokenizer, Tokenizer],
        vocabularies: tuple[Vocabulary, Vocabulary],
        options: DecodingConfig,
        unknown: UnknownWords = NO_LEXICON,
        shortlist: Shortlist | None = None,
    ) -> None:
        """`tokenizers` and `vocabularies` are (source, target); without `shortlist` all words are scored."""
        self.model = model.eval()
        self.src_tokenizer, self.tgt_tokenizer = tokenizers
        self.src_vocabulary, self.tgt_vocabulary = vocabularies
        self.options, self.unknown, self.shortlist = options, unknown, shortlist

    def translate(self, texts: Sequence[str], prefixes: Sequence[str] | None = None) -> list[Translation]:
        """One translation a text, in the same order; an empty text gives an empty one.

        Args:
            prefixes: what each translation begins with, as raw text.

        Raises:
            DataError: a prefix has a word that is not in the vocabulary.
            TooLargeError: a text does not fit into memory, not even alone.
        """
        return [translations[0] for translations in self.translate_n_best(texts, 1, prefixes)]

    def translate_n_best(self, texts: Sequence[str], n: int, prefixes: Sequence[str] | None = None) -> list[list[Translation]]:
        """The n best translations of each text, best first, or n samples of it; an empty text has one, which is empty.

        Different tokens may be joined to the same text; of these the best is there. There are fewer than n where the beam
        has no more. Samples are there as they are drawn, and so may be alike.

        Raises:
            ConfigError: the beam is not as wide as `n`.
            DataError: a prefix has a word that is not in the vocabulary.
            TooLargeError: a text does not fit into memory, not even alone.
        """
        beam = beam_for(n, self.options)
        given = self._read(texts, prefixes)
        width = "the number of samples" if self.options.method == "sampling" else "decoding.beam"

        def make(chosen: Sequence[int]) -> list[list[Translation]]:
            return self._translate([given[i] for i in chosen], n)

        found, advice = [[Translation(text)] for text in texts], f"lower {width} or decoding.max_source_tokens"
        for i, best in run_batches(make, self._plan([len(one.tokens) for one in given], beam), advice, self.model.device):
            found[i] = [replace(one, src_cut=True) for one in best] if given[i].is_cut else best
        return found

    def _read(self, texts: Sequence[str], prefixes: Sequence[str] | None) -> list["_Given"]:
        longest = self.options.max_source_tokens
        parts = zip(texts, self.src_tokenizer.split_all(texts), self._prefix_ids(texts, prefixes), strict=True)
        return [_Given(text, tokens[:longest], prefix, is_cut=len(tokens) > longest) for text, tokens, prefix in parts]

    def _translate(self, given: Sequence["_Given"], n: int) -> list[list[Translation]]:
        """A batch."""
        src, prefixes = [self.src_vocabulary.ids(one.tokens) for one in given], [one.prefix for one in given]
        words = None if self.shortlist is None else self.shortlist.choose(src, chain.from_iterable(prefixes))
        hypotheses = search_batch(self.model, src, self.options, n_best=n, prefixes=prefixes, words=words)
        found = [
            [self._to_translation(one.text, one.tokens, hypothesis) for hypothesis in best]
            for one, best in zip(given, hypotheses, strict=True)
        ]
        if self.options.method == "sampling":
            return found
        found = [_distinct(best) for best in found]
        lacking = [i for i, best in enumerate(found) if len(best) < n < self.options.beam]
        if lacking:
            wider = self._translate([given[i] for i in lacking], self.options.beam)
            for i, best in zip(lacking, wider, strict=True):
                found[i] = best[:n]
        return found

    def _prefix_ids(self, texts: Sequence[str], prefixes: Sequence[str] | None) -> list[list[int]]:
        if prefixes is None:
            return [[] for _ in texts]
        if len(prefixes) != len(texts):
            raise DataError(f"{len(prefixes)} prefixes for {len(texts)} texts: give one for each, which may be empty")
        tokens = self.tgt_tokenizer.split_all(prefixes)
        for prefix, parts in zip(prefixes, tokens, strict=True):
            unknown = [part for part in parts if part not in self.tgt_vocabulary]
            if unknown:
                raise DataError(
                    f"prefix {prefix!r}: {self.tgt_tokenizer.join(unknown[:1])!r} is not in the vocabulary of the target"
                )
        return [self.tgt_vocabulary.ids(parts) for parts in tokens]

    def _plan(self, lengths: Sequence[int], beam: int) -> Iterator[list[int]]:
        """Sentences of like length are searched together: little padding, and they end together. Empty ones are in no batch."""
        batch: list[int] = []
        for i in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]):
            tokens = (len(batch) + 1) * beam * max(lengths[i], LEAST_TOKENS)
            if batch and (len(batch) == self.options.batch or tokens > MOST_TOKENS):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _to_translation(self, source: str, src_tokens: Sequence[str], hypothesis: Hypothesis) -> Translation:
        tokens = self.tgt_vocabulary.tokens(hypothesis.ids)
        replaced = self._replace(source, src_tokens, tokens, hypothesis) if self.unknown.replace and UNKNOWN in tokens else ()
        return Translation(
            source=source,
            text=self.tgt_tokenizer.join(with_replacements(tokens, replaced)),
            src_tokens=tuple(src_tokens),
            tokens=tuple(tokens),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            token_log_probs=tuple(hypothesis.token_log_probs),
            attention=hypothesis.attention,
            complete=hypothesis.complete,
            replaced=replaced,
        )

    def _replace(
        self, source: str, src_tokens: Sequence[str], tokens: Sequence[str], hypothesis: Hypothesis
    ) -> tuple[Replacement, ...]:
        written = surface_forms(source, src_tokens, self.src_tokenizer)
        return replace_unknown(tokens, src_tokens, written, hypothesis.attention, self.unknown.lexicon)


@dataclass(frozen=True)
class _Given:
    """A text to translate, its tokens (all that are read), and the ids that its translations begin with."""

    text: str
    tokens: Sequence[str]
    prefix: Sequence[int]
    is_cut: bool


def _distinct(translations: Sequence[Translation]) -> list[Translation]:
    """The first of each text."""
    texts = [one.text for one in translations]
    return [one for i, one in enumerate(translations) if one.text not in texts[:i]]


def beam_for(n: int, options: DecodingConfig) -> int:
    """The hypotheses of a sentence that are searched for its `n` best. Raises: ConfigError if the beam is not as wide."""
    if n < 1:
        raise ConfigError(f"{n} translations of a sentence: ask for at least one")
    if options.method == "sampling":
        return n
    if n > options.beam:
        raise ConfigError(f"{n} translations of a sentence: the beam keeps {options.beam}; set decoding.beam to {n} or more")
    return options.beam


@torch.inference_mode()
def search_batch(
    model: TranslationModel,
    src: Sequence[Sequence[int]],
    options: DecodingConfig,
    *,
    n_best: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    words: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses for sentences, and what they begin with, given as ids without special tokens; the model is in evaluation mode.

    Args:
        words: [v], the target ids to choose from, ascending, those of the special tokens and the prefixes among them; or all.
    """
    begun = prefixes if prefixes is not None else [()] * len(src)
    if words is not None:
        begun = [torch.searchsorted(words, torch.tensor(prefix, dtype=torch.long)).tolist() for prefix in begun]
        model = model.restrict(words.to(model.device))
    padded, lengths = pad_sources(src)
    # What is drawn for a sentence follows from it and the seed: not from its place among others, nor from who else is in its batch.
    sentences = [Sentence(n, prefix, key=ids) for n, prefix, ids in zip(lengths.tolist(), begun, src, strict=True)]
    special = WITHOUT_UNKNOWN if options.forbid_unknown else SPECIAL_IDS
    memory = model.encode(padded.to(model.device), lengths)
    found = search(model, model.start(memory), memory, sentences, special, options, n_best)
    if words is None:
        return found
    return [[replace(one, ids=words[one.ids].tolist()) for one in hypotheses] for hypotheses in found]

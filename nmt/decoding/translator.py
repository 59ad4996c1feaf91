"""The translator: raw text in, raw text out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from nmt.decoding.search import Hypothesis, SearchOptions, SpecialIds, search
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translation import Translation
from nmt.decoding.unknown import UNKNOWN, Replacement, UnknownWords, replace_unknown, with_replacements
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.seq2seq import Seq2Seq
from nmt.text.batching import pad_sources
from nmt.text.surface import surfaces
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import EOS, PAD, SOS, Vocabulary

MOST_TOKENS = 1 << 13  # of a batch of sources, with padding: a few very long sentences do not fill the memory
SPECIAL_IDS = SpecialIds(sos=SOS, eos=EOS, forbidden=(PAD, SOS))
NO_LEXICON = UnknownWords()


class Translator:
    """A model with the tokenizers and vocabularies of its two languages. The model is put into evaluation mode."""

    def __init__(
        self,
        model: Seq2Seq,
        *,
        tokenizers: tuple[Tokenizer, Tokenizer],
        vocabularies: tuple[Vocabulary, Vocabulary],
        options: SearchOptions,
        batch_size: int = 64,
        unknown: UnknownWords = NO_LEXICON,
        shortlist: Shortlist | None = None,
    ) -> None:
        """`tokenizers` and `vocabularies` are (source, target); `batch_size` is in sentences; without `shortlist` all is scored."""
        self.model = model.eval()
        self.src_tokenizer, self.tgt_tokenizer = tokenizers
        self.src_vocabulary, self.tgt_vocabulary = vocabularies
        self.options, self.batch_size = options, batch_size
        self.unknown, self.shortlist = unknown, shortlist

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """One translation a text, in the same order; an empty text gives an empty one."""
        translations = [Translation(text) for text in texts]
        sources = self.src_tokenizer.split_all(texts)
        for chosen in self._plan([len(tokens) for tokens in sources]):
            ids = [self.src_vocabulary.ids(sources[i]) for i in chosen]
            words = None if self.shortlist is None else self.shortlist.choose(ids)
            for i, hypotheses in zip(chosen, search_batch(self.model, ids, self.options, words), strict=True):
                translations[i] = self._to_translation(texts[i], sources[i], hypotheses[0])
        return translations

    def _plan(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Sentences of like length are searched together: little padding, and they end together. Empty ones are in no batch."""
        batch: list[int] = []
        for i in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]):
            if batch and (len(batch) == self.batch_size or (len(batch) + 1) * lengths[i] > MOST_TOKENS):
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
        written = surfaces(source, src_tokens, self.src_tokenizer)
        return replace_unknown(tokens, src_tokens, written, hypothesis.attention, self.unknown.lexicon)


@torch.inference_mode()
def search_batch(
    model: Seq2Seq, src: Sequence[Sequence[int]], options: SearchOptions, words: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Hypotheses for sentences given as ids without special tokens; the model is in evaluation mode.

    Args:
        words: [v], the target ids to choose from, ascending, the special ones among them; all if not given.
    """
    here = None if words is None else words.to(model.device)
    output = model.output if here is None else model.output.restrict(here)

    def step(ids: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, Tensor, DecoderState]:
        last = ids.to(model.device)
        stepped = model.step(last if here is None else here[last], state, memory)
        return output.log_probs(stepped.vector), stepped.attention, stepped.state

    padded, lengths = pad_sources(src)
    memory = model.encode(padded.to(model.device), lengths)
    found = search(step, model.start(memory), memory, lengths.tolist(), SPECIAL_IDS, options)
    if words is None:
        return found
    return [[replace(one, ids=words[one.ids].tolist()) for one in hypotheses] for hypotheses in found]

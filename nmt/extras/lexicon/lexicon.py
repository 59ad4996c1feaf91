"""The lexicon of a run: the translations of each source token, with their probabilities.

It makes a shortlist of target words for each batch: fewer logits cost less (Jean 2015, 3.2).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.parts import OUTPUTS
from nmt.config.problems import Problem
from nmt.config.schema import Config
from nmt.config.section import key_of
from nmt.decoding.ensemble import Ensemble, Member
from nmt.decoding.fast import Int8Linear, PackedLinear, linear_of, replace_submodules
from nmt.errors import ConfigError, DataError
from nmt.files import MAX_TEXT_BYTES, warn_if_changed, write_recorded
from nmt.lines import read_lines
from nmt.model.interface import TranslationModel
from nmt.model.lexical_bias import LexicalBias, Translations
from nmt.model.output import Softmax
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_vocabularies
from nmt.text.vocabulary import PAD, SPECIALS, UNK, Vocabulary

N_FREQUENT = 500  # target words on every shortlist, special tokens counted
LEXICON_FILE = "lexicon.tsv"
REMEDY = "correct it, or delete it and run `nmt lexicon` again"
HEADER = "source\ttarget\tprobability\tcount"


@dataclass(frozen=True)
class Entry:
    """A target token, p(target | source), and the number of links between the two."""

    token: str
    probability: float
    count: int


# Source token -> its translations, most probable first; `<unk>` is one of them.
Lexicon = Mapping[str, Sequence[Entry]]


def save_lexicon(path: Path, lexicon: Lexicon) -> None:
    """Write a table with one entry per line, whole or not at all."""
    rows = [
        f"{source}\t{entry.token}\t{entry.probability:.4f}\t{entry.count}"
        for source, entries in lexicon.items()
        for entry in entries
    ]
    write_recorded(path, "".join(f"{row}\n" for row in (HEADER, *rows)))


def load_lexicon(path: Path) -> Lexicon:
    """Raises: DataError if the file cannot be read, or a line is damaged."""
    header, *lines = read_lines(path, advice=REMEDY, max_bytes=MAX_TEXT_BYTES) or [""]
    if header != HEADER:
        raise DataError(f"{path}, line 1: expected {HEADER!r}, found {header!r}; {REMEDY}")
    lexicon: dict[str, list[Entry]] = {}
    for number, line in enumerate(lines, 2):
        if line.strip():
            try:
                source, token, probability, count = line.split("\t")
                entry = Entry(token, float(probability), int(count))
            except ValueError:
                raise DataError(
                    f"{path}, line {number}: expected source, target, probability and count "
                    f"with tabs between, found {line!r}; {REMEDY}"
                ) from None
            lexicon.setdefault(source, []).append(entry)
    warn_if_changed(path)
    for entries in lexicon.values():
        entries.sort(key=lambda entry: -entry.probability)
    return lexicon


def rules(config: Config) -> Iterator[Problem]:
    """A problem for each rule that is broken."""
    if not key_of(config.decoding, "shortlist", int):
        return
    if OUTPUTS[config.model.output].trait("partial"):
        text = "adaptive already computes only the words that it needs; set shortlist to 0"
        yield Problem(("decoding.shortlist", "model.output"), text)
    if (neighbors := getattr(config.decoding, "neighbors", None)) and neighbors.pairs:
        text = "neighbors may need any word; set one of them to 0"
        yield Problem(("decoding.shortlist", "decoding.neighbors.pairs"), text)


def wrap(members: Sequence[Member], run: Path, config: Config) -> Sequence[Member]:
    """The members as one model with a shortlist, if `decoding.shortlist` is set.

    Raises:
        ConfigError: the run has no lexicon.
        DataError: the lexicon is damaged.
    """
    size, path = key_of(config.decoding, "shortlist", int), run / LEXICON_FILE
    if not size:
        return members
    if not path.exists():
        raise ConfigError(
            f"decoding.shortlist: {size} needs the lexicon of the run; `nmt lexicon {run}` makes it"
        )
    shortlist = Shortlist(load_lexicon(path), *load_vocabularies(run), size)
    models = [member.model for member in members]
    model = models[0] if len(models) == 1 else Ensemble(models)
    return [Member(members[0].trained, with_shortlist(model, shortlist))]


class Shortlist:
    """Chooses frequent target words, and the best translations of the source words of a batch.

    Args:
        size: translations per source word.
    """

    def __init__(
        self, lexicon: Lexicon, src_vocabulary: Vocabulary, tgt_vocabulary: Vocabulary, size: int
    ) -> None:
        self._frequent = np.arange(min(max(N_FREQUENT, len(SPECIALS)), len(tgt_vocabulary)))
        self._translations: dict[int, NDArray[np.int64]] = {}
        for token, entries in lexicon.items():
            (src_id,) = src_vocabulary.ids([token])
            if src_id == UNK and token != SPECIALS[UNK]:  # a user may have added words to the file
                continue
            in_vocabulary = [
                entry.token for entry in entries[:size] if entry.token in tgt_vocabulary
            ]
            self._translations[src_id] = np.array(tgt_vocabulary.ids(in_vocabulary), np.int64)

    def choose(self, sources: Iterable[Sequence[int]], required: Iterable[int] = ()) -> Tensor:
        """The target ids [v] for a batch, ascending, with all `required` and special tokens."""
        src_ids = {index for source in sources for index in source}
        translations = [
            self._translations[index] for index in src_ids if index in self._translations
        ]
        return torch.from_numpy(
            np.unique(
                np.concatenate([self._frequent, np.array([*required], np.int64), *translations])
            )
        )


def with_shortlist(model: TranslationModel, shortlist: Shortlist) -> TranslationModel:
    """A copy of a model that, in search, predicts only the words of the shortlist for a batch. It
    shares everything with the original.
    """

    def choose_words(
        sources: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]]
    ) -> tuple[TranslationModel, Tensor]:
        words = shortlist.choose(sources, chain.from_iterable(prefixes))
        return restrict(model, words.to(model.device)), words

    copied = replace_submodules(model)
    copied.choose_words = choose_words
    return copied


def restrict(model: TranslationModel, ids: Tensor) -> TranslationModel:
    """A copy of a model with a target vocabulary of only `ids` [v], numbered in that order. It
    shares everything else with the original.

    Raises:
        ConfigError: the model has an output layer that cannot be restricted.
    """
    if isinstance(model, Ensemble):
        return Ensemble([restrict(member, ids) for member in model.members])
    assert isinstance(model, Seq2Seq)
    if not isinstance(model.output, Softmax):
        raise ConfigError(
            f"decoding.shortlist: model.output {type(model.output).__name__.lower()} does not "
            "support a shortlist; set it to 0"
        )
    logits: nn.Module = model.output.logits
    if isinstance(logits, PackedLinear | Int8Linear):  # see `for_search`
        restricted = logits.select(ids)
    else:
        assert isinstance(logits, nn.Linear)
        restricted = linear_of(logits.weight[ids], logits.bias[ids])
    submodules: dict[str, nn.Module] = {
        "tgt_embedding": RestrictedEmbedding(model.tgt_embedding, ids),
        "output": replace_submodules(model.output, logits=restricted),
    }
    if model.lexical_bias is not None:
        submodules["lexical_bias"] = RestrictedBias(model.lexical_bias, ids)
    return replace_submodules(model, **submodules)


class RestrictedEmbedding(nn.Module):
    """An embedding of only the words `ids` [v], numbered in that order."""

    def __init__(self, embedding: nn.Module, ids: Tensor) -> None:
        super().__init__()
        self.embedding, self.ids = embedding, ids

    def forward(self, ids: Tensor) -> Tensor:
        """[B] -> the rows of the whole embedding."""
        return self.embedding(self.ids[ids])  # type: ignore[no-any-return]


class RestrictedBias(nn.Module):
    """A lexical bias of only the words `ids` [v], numbered in that order."""

    def __init__(self, bias: LexicalBias, ids: Tensor) -> None:
        super().__init__()
        self.bias, self.ids = bias, ids

    def look_up(self, src: Tensor) -> Translations:
        """The translations of sentences [B, S] that are among these words."""
        found = self.bias.look_up(src)
        places = torch.searchsorted(self.ids, found.ids).clamp(max=len(self.ids) - 1)
        is_among = self.ids[places] == found.ids
        return Translations(
            places.where(is_among, PAD), found.probabilities * is_among.unsqueeze(1)
        )

    def forward(self, attention: Tensor, translations: Translations) -> Tensor:
        """The bias of each translation, as the whole one gives it: [B, T, S] -> [B, T, U]."""
        return self.bias(attention, translations)  # type: ignore[no-any-return]

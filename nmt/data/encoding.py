"""From cleaned pairs to tokens, vocabularies and ids.

Workers tokenize. This process numbers the tokens in the order of their arrival and writes the
numbers to disk. When all tokens are counted and the vocabularies are built, it replaces the numbers
by ids, so no text is tokenized twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.config.parts import TOKENIZERS
from nmt.config.schema import Config, TokenizerConfig
from nmt.data.corpus import BLOCK_SENTENCES, Ids, SequencesWriter
from nmt.data.manifest import load_manifest
from nmt.data.reading import CHUNK_ROWS, Pair
from nmt.data.workers import Workers, chunked
from nmt.errors import DataError
from nmt.files import check_content, explain_read_errors
from nmt.lines import read_lines
from nmt.text.tokenizers import SIDES, Side, load_tokenizer, model_path
from nmt.text.vocabulary import UNK, Vocabulary

# All that a worker needs to load the tokenizer of one side: the arguments of `load_tokenizer`.
TokenizerPlan = tuple[TokenizerConfig, str, Side, Path]


class TokenizedChunk(NamedTuple):
    """Sentences of one side.

    Attributes:
        tokens: the different tokens. counts: how often each occurs.
        numbers: indices into `tokens`, one sentence after the other.
        lengths: the number of tokens of each sentence.
    """

    tokens: list[str]
    counts: list[int]
    numbers: Ids
    lengths: Ids

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]]) -> "TokenizedChunk":
        """The tokens of sentences, numbered."""
        index: dict[str, int] = {}
        numbers = np.array(
            [index.setdefault(token, len(index)) for token in chain.from_iterable(sentences)],
            np.int32,
        )
        counts = np.bincount(numbers, minlength=len(index)).tolist()
        lengths = np.array([len(tokens) for tokens in sentences], np.int32)
        return cls([*index], counts, numbers, lengths)


@dataclass
class TokenizedSide:
    """One side of one split. path: of its tokens as numbers. lengths: of sentences, by chunk."""

    path: Path
    lengths: list[Ids] = field(default_factory=list)

    @property
    def n_sentences(self) -> int:
        return sum(map(len, self.lengths))

    @property
    def counts(self) -> dict[str, float]:
        """All tokens; the mean of a sentence; the longest sentence."""
        n_tokens = sum(int(lengths.sum()) for lengths in self.lengths)
        longest = max((int(lengths.max()) for lengths in self.lengths if len(lengths)), default=0)
        return {
            "tokens": n_tokens,
            "mean": round(n_tokens / max(1, self.n_sentences), 2),
            "longest": longest,
        }


class TokenTable:
    """Numbers the tokens of one side in order of arrival, and counts those of the training data."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.counts: Counter[str] = Counter()

    def numbers(self, chunk: TokenizedChunk, *, count: bool) -> Ids:
        """The table's number of each token of `chunk`. count: add the tokens to `counts`, too."""
        numbers = [self._numbers.setdefault(token, len(self._numbers)) for token in chunk.tokens]
        if count:
            self.counts.update(dict(zip(chunk.tokens, chunk.counts, strict=True)))
        return np.array(numbers, np.int32)[chunk.numbers]

    def __iter__(self) -> Iterator[str]:
        """The tokens in the order of their numbers."""
        return iter(self._numbers)

    def ids(self, vocabulary: Vocabulary) -> Ids:
        """The vocabulary id of each number."""
        return np.array(vocabulary.ids(self._numbers), np.int32)


def learn(config: TokenizerConfig, paths: list[Path]) -> bytes:
    """Runs in a worker: what the tokenizer learns from files with one sentence per line.

    Raises:
        DataError: it cannot learn from them.
    """
    texts = chain.from_iterable(map(read_lines, paths))
    return bytes(TOKENIZERS[config.kind].load().learn(texts, config))


def tokenize(
    pairs: Iterable[Pair],
    sides: Mapping[Side, TokenizedSide],
    tables: Mapping[Side, TokenTable],
    tokenizers: Mapping[Side, TokenizerPlan],
    workers: Workers,
    advance: Callable[[int], object],
    *,
    count: bool,
) -> None:
    """Write the token numbers of `pairs` to the files of `sides`.

    Args:
        advance: called with the number of pairs after each chunk.
        count: add the tokens to the counts of `tables`.
    """
    plans = [tokenizers[side] for side in SIDES]
    calls = ((plans, chunk) for chunk in chunked(pairs, CHUNK_ROWS))
    with sides["src"].path.open("wb") as src_file, sides["tgt"].path.open("wb") as tgt_file:
        for chunks in workers.map(_tokenize, calls):
            for side, file, chunk in zip(SIDES, (src_file, tgt_file), chunks, strict=True):
                file.write(tables[side].numbers(chunk, count=count).tobytes())
                sides[side].lengths.append(chunk.lengths)
            advance(len(chunks[0].lengths))


def copy_like(config: Config, like: Path, folder: Path) -> dict[Side, Vocabulary]:
    """The vocabularies of `like`; its subword models are copied to `folder`.

    Raises:
        DataError: `like` lacks a file, a file is damaged, or they were made with other settings.
    """
    like_config = load_manifest(like)["config"]
    this_config = config.to_dict()
    is_opposite = like_config["data"]["direction"] == config.data.opposite_direction
    for section, key in (
        ("data", "direction"),  # it may also be the opposite one
        ("tokenizer", "kind"),
        ("tokenizer", "lowercase"),
        ("vocabulary", "joint"),
    ):
        expected = like_config[section].get(key)
        actual = this_config[section][key]
        if actual != expected and not (key == "direction" and is_opposite):
            raise DataError(
                f"vocabulary.like: {like} was prepared with {section}.{key} {expected}, but this "
                f"configuration has {actual}; set it to {expected}"
            )
    advice = "set vocabulary.like to a complete run or prepared folder"
    vocabularies: dict[Side, Vocabulary] = {}
    for side, like_side in zip(SIDES, reversed(SIDES) if is_opposite else SIDES, strict=True):
        vocabularies[side] = Vocabulary.load(like / f"{like_side}.vocab.txt")
        if TOKENIZERS[config.tokenizer.kind].trait("learned"):
            path = model_path(like, like_side)
            with explain_read_errors(path, f"; {advice}"):
                check_content(path, advice)
                model = path.read_bytes()
            model_path(folder, side).write_bytes(model)
    return vocabularies


def build_vocabularies(
    config: Config,
    tables: Mapping[Side, TokenTable],
    given: Mapping[Side, Vocabulary] | None = None,
) -> dict[Side, Vocabulary]:
    """The vocabularies of both sides; given: those of `vocabulary.like`."""
    settings = config.vocabulary
    counts = {side: table.counts for side, table in tables.items()}
    if settings.joint:
        counts = dict.fromkeys(SIDES, counts["src"] + counts["tgt"])
    if given is not None:
        n = settings.extend
        return {side: old.extended(counts[side], n) if n else old for side, old in given.items()}
    return {
        side: Vocabulary.build(counts[side], settings.min_frequency, settings.max_size)
        for side in SIDES
    }


def write_ids(
    side: TokenizedSide, ids_of_numbers: Ids, stem: Path, advance: Callable[[int], object]
) -> int:
    """Turn the numbers of a side into ids, written as `Sequences`; the file of the numbers is
    deleted.

    Args:
        advance: called with the number of sentences after each block.

    Returns:
        The number of tokens that are not <unk>.
    """
    n_known = 0
    with SequencesWriter(stem, side.n_sentences) as writer, side.path.open("rb") as file:
        for chunks in chunked(side.lengths, max(1, BLOCK_SENTENCES // CHUNK_ROWS)):
            lengths = np.concatenate(chunks)
            ids = ids_of_numbers[np.frombuffer(file.read(int(lengths.sum()) * 4), np.int32)]
            n_known += int(np.count_nonzero(ids != UNK))
            writer.write(ids, lengths)
            advance(len(lengths))
    side.path.unlink()
    return n_known


def detokenize(plan: TokenizerPlan, texts: list[str]) -> tuple[str, list[str]]:
    """Runs in a worker: the signature of the tokenizer, and `join(split(text))` of each text."""
    tokenizer = _tokenizer(*plan)
    return tokenizer.signature, [tokenizer.join(tokens) for tokens in tokenizer.split_all(texts)]


_tokenizer = cache(load_tokenizer)


def _tokenize(plans: list[TokenizerPlan], pairs: list[Pair]) -> list[TokenizedChunk]:
    """Runs in a worker: the tokens of each side."""
    sides = zip(plans, zip(*pairs, strict=True), strict=True)
    return [TokenizedChunk.of(_tokenizer(*plan).split_all(texts)) for plan, texts in sides]

"""From cleaned pairs to tokens, vocabularies and ids.

Workers tokenize. This process numbers the tokens in the order of their arrival and writes the
numbers to disk. When all tokens are counted and the vocabularies are built, it replaces the numbers
by ids, so no text is tokenized twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np

from nmt.config.parts import TOKENIZERS
from nmt.config.schema import Config, TokenizerConfig
from nmt.data.corpus import BLOCK_SENTENCES, Ids, SequencesWriter
from nmt.data.reading import CHUNK_ROWS, Pair
from nmt.data.workers import Workers, chunked
from nmt.text.tokenizers import SIDES, Side, Tokenizer, load_tokenizer
from nmt.text.vocabulary import UNK, Vocabulary


@dataclass(frozen=True)
class TokenizerPlan:
    """All that a worker needs to load the tokenizer of one side. `folder` holds the subword
    models.
    """

    config: TokenizerConfig
    language: str
    side: Side
    folder: Path


@dataclass(frozen=True)
class TokenizedChunk:
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


@dataclass
class TokenizedSide:
    """One side of one split. path: a file with the numbers of its tokens. lengths: of its
    sentences, by chunk.
    """

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
        mean = round(n_tokens / max(1, self.n_sentences), 2)
        return {"tokens": n_tokens, "mean": mean, "longest": longest}


class TokenTable:
    """Numbers the tokens of one side in the order of their arrival, and counts those of the
    training data.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.counts: Counter[str] = Counter()

    def numbers(self, chunk: TokenizedChunk, *, count: bool) -> Ids:
        """The table's number of each token of `chunk`. count: add the tokens to `counts`, too."""
        table = np.array(
            [self._numbers.setdefault(token, len(self._numbers)) for token in chunk.tokens],
            np.int32,
        )
        if count:
            self.counts.update(dict(zip(chunk.tokens, chunk.counts, strict=True)))
        return table[chunk.numbers] if len(table) else chunk.numbers

    def ids(self, vocabulary: Vocabulary) -> Ids:
        """The vocabulary id of each number."""
        return np.array(vocabulary.ids(self._numbers), np.int32)


def plan_tokenizers(config: Config, folder: Path) -> dict[Side, TokenizerPlan]:
    languages = (config.data.src_language, config.data.tgt_language)
    return {
        side: TokenizerPlan(config.tokenizer, language, side, folder)
        for side, language in zip(SIDES, languages, strict=True)
    }


def learn_models(
    config: TokenizerConfig, joint: bool, texts: Mapping[Side, Path], workers: Workers
) -> dict[Side, bytes]:
    """What the tokenizer learns for each side, or for both if `joint`, from files with one sentence
    per line. Raises: DataError.
    """
    if joint:
        model = workers.submit(_learn, config, list(texts.values())).result()
        return dict.fromkeys(texts, model)
    futures = {side: workers.submit(_learn, config, [path]) for side, path in texts.items()}
    return {side: future.result() for side, future in futures.items()}


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
    calls = ((tokenizers["src"], tokenizers["tgt"], chunk) for chunk in chunked(pairs, CHUNK_ROWS))
    files = {side: sides[side].path.open("wb") for side in SIDES}
    try:
        for chunks in workers.map(_tokenize_pairs, calls):
            for side, chunk in zip(SIDES, chunks, strict=True):
                files[side].write(tables[side].numbers(chunk, count=count).tobytes())
                sides[side].lengths.append(chunk.lengths)
            advance(len(chunks[0].lengths))
    finally:
        for file in files.values():
            file.close()


def build_vocabularies(config: Config, tables: Mapping[Side, TokenTable]) -> dict[Side, Vocabulary]:
    settings = config.vocabulary
    counts = {side: table.counts for side, table in tables.items()}
    if settings.joint:
        counts = dict.fromkeys(SIDES, counts["src"] + counts["tgt"])
    tags = {"src": settings.tags or [], "tgt": settings.tags or [] if settings.joint else []}
    return {
        side: Vocabulary.build(counts[side], settings.min_frequency, settings.max_size, tags[side])
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
            numbers = np.frombuffer(file.read(int(lengths.sum()) * 4), np.int32)
            ids = ids_of_numbers[numbers] if len(numbers) else numbers
            n_known += int(np.count_nonzero(ids != UNK))
            writer.write(ids, lengths)
            advance(len(lengths))
    side.path.unlink()
    return n_known


def detokenize(plan: TokenizerPlan, texts: list[str]) -> tuple[str, list[str]]:
    """Runs in a worker: the signature of the tokenizer, and `join(split(text))` of each text."""
    tokenizer = _tokenizer(plan)
    return tokenizer.signature, [tokenizer.join(tokens) for tokens in tokenizer.split_all(texts)]


@cache
def _tokenizer(plan: TokenizerPlan) -> Tokenizer:
    return load_tokenizer(plan.config, plan.language, plan.side, plan.folder)


def _tokenize_pairs(
    src: TokenizerPlan, tgt: TokenizerPlan, pairs: list[Pair]
) -> tuple[TokenizedChunk, TokenizedChunk]:
    return _tokenize_side(src, [pair[0] for pair in pairs]), _tokenize_side(
        tgt, [pair[1] for pair in pairs]
    )


def _tokenize_side(plan: TokenizerPlan, texts: list[str]) -> TokenizedChunk:
    sentences = _tokenizer(plan).split_all(texts)
    index: dict[str, int] = {}
    numbers = np.array(
        [index.setdefault(token, len(index)) for token in chain.from_iterable(sentences)], np.int32
    )
    counts = np.bincount(numbers, minlength=len(index)).tolist()
    return TokenizedChunk(
        list(index), counts, numbers, np.array([len(tokens) for tokens in sentences], np.int32)
    )


def _learn(config: TokenizerConfig, paths: list[Path]) -> bytes:
    def sentences() -> Iterator[str]:
        for path in paths:
            with path.open(encoding="utf-8", newline="\n") as file:
                yield from file

    model: bytes = TOKENIZERS[config.kind].load().learn(sentences(), config)
    return model

"""Pretrained word vectors for the embeddings, from text files in the format of GloVe, word2vec or
fastText.

A line holds a token and its numbers, separated by spaces. word2vec and fastText files begin with a
line `count dimension`. Files are plain text or .gz.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.lines import read_raw_lines
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_vocabularies
from nmt.text.tokenizers import JOINER, SIDES, SPACE
from nmt.text.vocabulary import SPECIALS, Vocabulary

NO_RANK = 127  # above any rank


@torch.no_grad()
def fill(model: Seq2Seq, config: Config) -> list[str]:
    """Copy the word vectors that the configuration names into the embeddings; returns how many
    tokens they cover.

    One factor scales all vectors, so that their standard deviation becomes that of the initial
    weights. Directions and relative lengths stay. Without scaling, published vectors are often so
    small that attention takes long to form.

    Raises:
        DataError: a file cannot be used.
    """
    embeddings = (model.src_embedding, model.tgt_embedding)
    vocabularies, lines = load_vocabularies(config.prepared_folder), list[str]()
    for side, embedding, vocabulary in zip(SIDES, embeddings, vocabularies, strict=True):
        path = getattr(config.model, f"{side}_vectors")
        if path is not None:
            try:
                ids, matrix, coverage = load_vectors(path, vocabulary, config.model.embedding_size)
            except DataError as error:
                raise DataError(f"model.{side}_vectors: {error}") from None
            weight = embedding.weight
            scale = weight.std(correction=0).item() / float(matrix.std(dtype=np.float64))
            rows = torch.from_numpy(matrix.astype(np.float64) * scale)
            weight[torch.from_numpy(ids).to(weight.device)] = rows.to(weight)
            lines.append(f"{side} vectors: {coverage}")
    return lines


def load_vectors(
    path: Path, vocabulary: Vocabulary, dimension: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], str]:
    """Read the vectors of the vocabulary's tokens; other lines take no memory.

    If the file lacks a token, its lower-cased form is used; then the token without the mark that a
    tokenizer put before it (for a space or for no space); then that form lower-cased. If a token
    has several vectors, the first counts. Only the numbers of vectors that are used are checked.

    Returns:
        ids: [n], the tokens with a vector, ascending, without special tokens.
        matrix: [n, dimension], a row for each id.
        coverage: the share of tokens and of running words of the training data with a vector, as
            text.

    Raises:
        DataError: the file is missing, empty or damaged; its vectors do not have `dimension` finite
            numbers; or it has none of the vocabulary's tokens.
    """
    wanted = _wanted(vocabulary)
    ranks = np.full(len(vocabulary), NO_RANK, np.int8)
    matrix = np.zeros((len(vocabulary), dimension), np.float32)
    for where, token, numbers in _rows(path, dimension):
        improved = [(index, rank) for index, rank in wanted.get(token, ()) if rank < ranks[index]]
        if improved:
            vector = _vector(where, numbers, dimension)
        for index, rank in improved:
            matrix[index], ranks[index] = vector, rank
    (ids,) = np.nonzero(ranks < NO_RANK)
    n_tokens = len(vocabulary) - len(SPECIALS)
    if len(ids) == 0 or matrix[ids].std(dtype=np.float64) == 0:
        problem = "all vectors are the same for" if len(ids) else "has none of"
        raise DataError(
            f"{path}: {problem} the vocabulary's {n_tokens:,} tokens; give a file of the text's "
            "language, in UTF-8"
        )
    counts = np.array(vocabulary.counts)
    coverage = (
        f"{len(ids):,} of {n_tokens:,} tokens ({100 * len(ids) / n_tokens:.1f} %), "
        f"{100 * counts[ids].sum() / max(1, counts.sum()):.1f} % of the running words, from "
        f"{path.name}"
    )
    return ids, matrix[ids], coverage


def _wanted(vocabulary: Vocabulary) -> dict[bytes, list[tuple[int, int]]]:
    """Spelling in the file -> (id that can take its vector, rank of the spelling); rank 0 is the
    token itself.
    """
    wanted: dict[bytes, list[tuple[int, int]]] = {}
    for index, token in islice(enumerate(vocabulary), len(SPECIALS), None):
        bare = token[1:] if token.startswith((JOINER, SPACE)) else ""
        for rank, form in enumerate(dict.fromkeys([token, token.lower(), bare, bare.lower()])):
            if form:
                wanted.setdefault(form.encode(), []).append((index, rank))
    return wanted


def _rows(path: Path, dimension: int) -> Iterator[tuple[str, bytes, bytes]]:
    """(place, token, numbers) of each line but the header and empty ones."""
    for number, line in enumerate(read_raw_lines(path), start=1):
        place, fields = f"{path}, line {number}", line.split() if number == 1 else []
        is_header = len(fields) == 2 and all(field.isdigit() for field in fields)
        size = fields[1].decode() if is_header else str(len(fields) - 1)
        if fields and size != str(dimension):
            raise DataError(
                f"{place}: vectors of {size[:18]} numbers, but model.embedding_size is "
                f"{dimension}; set it to that, or give another file"
            )
        row = line.rstrip(b" \t\r")
        if row and not is_header:
            if row.count(b" ") == dimension:  # much faster than splitting, and nearly always so
                token, _, numbers = row.partition(b" ")
            else:  # a token with spaces, or tabs, or several spaces in a row
                token, *rest = row.rsplit(None, dimension)
                numbers = b" ".join(rest)
            yield place, token, numbers


def _vector(place: str, numbers: bytes, dimension: int) -> npt.NDArray[np.float32]:
    try:
        values = np.array([float(number) for number in numbers.split()])
    except ValueError:
        values = np.array([np.nan])
    if len(values) != dimension or not (abs(values) <= np.finfo(np.float32).max).all():
        raise DataError(
            f"{place}: expected a token and {dimension} finite numbers, found "
            f"{numbers[:40].decode('utf-8', 'replace')!r}; fix the line or delete it"
        )
    return values.astype(np.float32)

"""What the model compares its state with: a key for each target token of the training pairs.

To compute the keys of the pairs that are similar to a sentence takes longer than to translate it.
So `nmt neighbors` stores those of all pairs in the run, with only the dimensions in which they
differ most (He et al. 2021, arXiv 2109.04212).
"""

import hashlib
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from nmt.data.corpus import Corpus, Sequences
from nmt.data.padding import cut_batches, pad_with_eos
from nmt.decoding.model import TranslationModel
from nmt.errors import NmtWarning, in_one_line
from nmt.files import record_checksums, replacing, sha256_of
from nmt.run.checkpoint import read_arrays
from nmt.text.vocabulary import EOS, PAD, SOS

KEYS_FILE = "neighbors.safetensors"
read_keys = partial(read_arrays, remedy="repeat `nmt neighbors`")
KEY_SIZE = 64  # numbers of a stored key
MAX_SAMPLED = 1 << 13  # pairs whose keys show which dimensions these are
MAX_TOKENS = 2048  # of a batch of pairs whose keys are made


class Datastore:
    """A key and a value for each target token of some pairs, <eos> counted.

    Args:
        tgt: the target sentences.
        keys: [n + 1, r], the rows of one pair after the other; the last row pads.
        projection: [R, r], of a vector of the readout to a key; None if a key is the vector.

    Attributes:
        values: [n + 1], the ids of the tokens.
    """

    def __init__(
        self, tgt: Sequences, keys: NDArray[np.floating], projection: NDArray[np.float32] | None
    ) -> None:
        self.keys, self.projection = keys, projection
        ids, lengths = tgt.block(0, len(tgt))
        values = np.append(np.insert(ids, np.cumsum(lengths), EOS), PAD)
        self.values = values.astype(np.int64)
        self._starts = [0, *np.cumsum(lengths + 1).tolist()]

    @classmethod
    def of(
        cls, model: TranslationModel, pairs: Corpus, projection: NDArray[np.float32] | None = None
    ) -> "Datastore":
        """With keys from forced decoding: whole vectors, or projected ones in half precision."""
        store = cls(pairs.tgt, np.zeros((0, 0)), projection)
        order = np.lexsort((pairs.src.lengths, pairs.tgt.lengths))
        longest = np.maximum(pairs.src.lengths, pairs.tgt.lengths)[order] + 1
        for part in cut_batches(longest.tolist(), max_padded=MAX_TOKENS):
            indices = order[part]
            for index, vectors in zip(indices, _vectors(model, *pairs.read(indices)), strict=True):
                keys = vectors if projection is None else (vectors @ projection).astype(np.float16)
                if not store.keys.size:
                    store.keys = np.zeros((len(store.values), keys.shape[1]), keys.dtype)
                store.keys[store.rows([index])] = keys
        return store

    def rows(self, pairs: Iterable[int]) -> list[int]:
        """The rows of some pairs."""
        return [row for pair in pairs for row in range(*self._starts[pair : pair + 2])]


def _vectors(
    model: TranslationModel, src: list[NDArray[np.int32]], tgt: list[NDArray[np.int32]]
) -> list[NDArray[np.float32]]:
    """The vectors [T, R] of the readout at the tokens and <eos> of each target sentence."""
    targets, lengths = pad_with_eos(tgt)
    memory, state = model.encode([ids.tolist() for ids in src])
    ids, vectors = np.full(len(src), SOS), list[NDArray[np.float32]]()
    for target in targets.T:
        output = model.step(ids, state, memory)
        vectors.append(output.vectors.values)
        state, ids = output.state, target
    return [each[:length] for each, length in zip(np.stack(vectors, 1), lengths, strict=True)]


def save_keys(path: Path, model: TranslationModel, pairs: Corpus, digest: str) -> None:
    """Write the keys of all pairs, whole or not at all.

    Args:
        digest: of the pairs and the weights.

    Raises:
        OSError: the keys cannot be written.
    """
    sampled = range(0, len(pairs), len(pairs) // MAX_SAMPLED + 1)
    sample = Datastore.of(model, pairs.selection([(i, i + 1) for i in sampled])).keys
    squares, axes = np.linalg.eigh(sample.T @ sample)
    # Longer, so that the squares have the mean that they have in all dimensions.
    scale = np.sqrt(squares.sum() / squares[-KEY_SIZE:].sum())
    projection = np.ascontiguousarray(scale * axes[:, -KEY_SIZE:], np.float32)
    store = Datastore.of(model, pairs, projection)
    arrays = dict[str, NDArray[Any]](keys=store.keys, projection=projection)
    arrays["digest"] = np.frombuffer(bytes.fromhex(digest), np.uint8)
    for name, sentences in (("src", pairs.src), ("tgt", pairs.tgt)):
        arrays[name], arrays[f"{name}_lengths"] = sentences.block(0, len(pairs))
    with replacing(path) as temporary:
        try:
            save_file(arrays, temporary)
        except SafetensorError as error:
            raise OSError(in_one_line(error)) from None
        record_checksums(path.parent, {path.name: sha256_of(temporary)})


def load_keys(path: Path, digest: str) -> tuple[Corpus, Datastore] | None:
    """The pairs and their keys; None if they are not stored or, with a warning, if they are of
    other pairs or weights.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not path.exists():
        return None
    arrays = read_keys(path)
    if arrays["digest"].tobytes().hex() != digest:
        warnings.warn(
            f"{path}: is of other weights or pairs, so translating takes longer; "
            "`nmt neighbors RUN` writes it again, before `nmt share bundle`",
            NmtWarning,
            stacklevel=2,
        )
        return None
    src, tgt = (
        Sequences.of_blocks([(arrays[name], arrays[f"{name}_lengths"])]) for name in ("src", "tgt")
    )
    return Corpus(src, tgt), Datastore(tgt, arrays["keys"], arrays["projection"])


def digest_of(table: Path, weights: str) -> str:
    """The SHA-256 of the pairs and of the SHA-256 of the weights."""
    return hashlib.sha256(table.read_bytes() + weights.encode()).hexdigest()

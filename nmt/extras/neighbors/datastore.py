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

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from nmt.config.schema import BatchConfig
from nmt.data.batches import plan_batches, read_batches
from nmt.data.corpus import Corpus, Sequences
from nmt.errors import NmtWarning
from nmt.files import record_checksums, replacing, sha256_of
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import read_tensors
from nmt.text.vocabulary import EOS, PAD

KEYS_FILE = "neighbors.safetensors"
KEY_SIZE = 64  # numbers of a stored key
MAX_SAMPLED = 1 << 13  # pairs whose keys show which dimensions these are
read_keys = partial(read_tensors, remedy="repeat `nmt neighbors`")
BATCH_CONFIG = BatchConfig(unit="tokens", size=2048)


class Datastore:
    """A key and a value for each target token of some pairs, <eos> counted.

    Args:
        tgt: the target sentences.
        keys: [n + 1, r], the rows of one pair after the other; the last row pads.
        projection: [R, r], of a vector of the readout to a key.

    Attributes:
        values: [n + 1], the ids of the tokens.
    """

    def __init__(self, tgt: Sequences, keys: Tensor, projection: Tensor) -> None:
        self.keys, self.projection = keys, projection
        ids, lengths = tgt.block(0, len(tgt))
        values = np.append(np.insert(ids, np.cumsum(lengths), EOS), PAD)
        self.values = torch.from_numpy(values.astype(np.int64))
        self._starts = [0, *np.cumsum(lengths + 1).tolist()]

    @classmethod
    @torch.inference_mode()
    def of(cls, model: Seq2Seq, pairs: Corpus, projection: Tensor | None = None) -> "Datastore":
        """With keys from teacher forcing: whole vectors, or projected ones in half precision."""
        dtype = model.src_embedding.weight.dtype if projection is None else torch.float16
        if projection is None:
            projection = torch.eye(model.decoder.readout.output_size).to(model.src_embedding.weight)
        keys = torch.zeros(pairs.tgt.n_tokens + len(pairs) + 1, projection.shape[1], dtype=dtype)
        store = cls(pairs.tgt, keys, projection)
        plan = plan_batches(pairs.src.lengths, pairs.tgt.lengths, BATCH_CONFIG, key=(0, 0))
        for indices, batch in zip(plan, read_batches(pairs, plan), strict=True):
            on_device = batch.to(model.device)
            decoded = model(on_device.src, on_device.src_lengths, on_device.tgt_in)
            vectors = decoded.at(on_device.token_positions).values
            keys[store.rows(indices)] = (vectors @ projection).to("cpu", dtype)
        return store

    def rows(self, pairs: Iterable[int]) -> list[int]:
        """The rows of some pairs."""
        return [row for pair in pairs for row in range(*self._starts[pair : pair + 2])]


def save_keys(path: Path, model: Seq2Seq, pairs: Corpus, table: Path) -> None:
    """Write the keys of all pairs, whole or not at all. table: the file with these pairs."""
    sampled = range(0, len(pairs), len(pairs) // MAX_SAMPLED + 1)
    sample = Datastore.of(model, pairs.selection([(i, i + 1) for i in sampled])).keys
    squares, axes = torch.linalg.eigh(sample.t() @ sample)
    # Longer, so that the squares have the mean that they have in all dimensions.
    scale = (squares.sum() / squares[-KEY_SIZE:].sum()).sqrt()
    projection = (scale * axes[:, -KEY_SIZE:]).contiguous()
    store = Datastore.of(model, pairs, projection.to(model.device))
    tensors = {"keys": store.keys, "projection": projection, "digest": _digest(table, model)}
    for name, sentences in (("src", pairs.src), ("tgt", pairs.tgt)):
        ids, lengths = map(torch.from_numpy, sentences.block(0, len(pairs)))
        tensors |= {name: ids, f"{name}_lengths": lengths}
    with replacing(path) as temporary:
        save_file(tensors, temporary)
        record_checksums(path.parent, {path.name: sha256_of(temporary)})


def load_keys(path: Path, model: Seq2Seq, table: Path) -> tuple[Corpus, Datastore] | None:
    """The pairs and their keys; None if they are not stored or, with a warning, if they are of
    another table or model.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not path.exists():
        return None
    tensors = read_keys(path)
    if not torch.equal(tensors["digest"], _digest(table, model)):
        warnings.warn(
            f"{path}: is of other weights or pairs, so translating takes longer; "
            "`nmt neighbors RUN` writes it again, before `nmt share bundle`",
            NmtWarning,
            stacklevel=2,
        )
        return None
    src, tgt = (
        Sequences.of_blocks([(tensors[name].numpy(), tensors[f"{name}_lengths"].numpy())])
        for name in ("src", "tgt")
    )
    return Corpus(src, tgt), Datastore(tgt, tensors["keys"], tensors["projection"])


def _digest(table: Path, model: Seq2Seq) -> Tensor:
    """The SHA-256 of the table and the weights."""
    weights = (tensor.cpu().numpy().tobytes() for tensor in model.state_dict().values())
    digest = hashlib.sha256(b"".join([table.read_bytes(), *weights])).digest()
    return torch.tensor([*digest], dtype=torch.uint8)

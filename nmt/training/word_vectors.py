"""Word vectors in a training: from the files that the configuration names into the rows of the embeddings."""

from pathlib import Path

import numpy as np
import torch

from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.run.folder import load_vocabularies
from nmt.text.tokenizers import Side
from nmt.training.vector_files import Vectors, load_vectors


def load_vectors_of(config: Config) -> dict[Side, Vectors]:
    """The word vectors that the configuration names. Raises: DataError."""
    paths: dict[Side, Path | None] = {"src": config.model.src_vectors, "tgt": config.model.tgt_vectors}
    vocabularies = dict(zip(paths, load_vocabularies(config.prepared_folder), strict=True))
    loaded: dict[Side, Vectors] = {}
    for side, path in paths.items():
        if path is not None:
            try:
                loaded[side] = load_vectors(path, vocabularies[side], config.model.embedding_size)
            except DataError as error:
                raise DataError(f"model.{side}_vectors: {error}") from None
    return loaded


@torch.no_grad()
def set_rows(weight: torch.Tensor, vectors: Vectors) -> None:
    """Put word vectors into the rows of `weight` [V, E] that are theirs.

    All are multiplied by one number, so that their standard deviation becomes that of the weights as they were. Directions and
    relative lengths stay; small first embeddings, as published vectors would often be, keep attention from forming for long.
    """
    scale = weight.std(correction=0).item() / float(vectors.matrix.std(dtype=np.float64))
    rows = torch.from_numpy(vectors.matrix.astype(np.float64) * scale)
    weight[torch.from_numpy(vectors.ids).to(weight.device)] = rows.to(weight)


def coverage(side: Side, vectors: Vectors) -> str:
    """What a side's file covers, in a line."""
    return f"{side} vectors: {vectors.coverage}"

"""The rules between keys of pretrained word vectors and others."""

from collections.abc import Iterator

from nmt.config.problems import Problem
from nmt.config.schema import Config


def rules(config: Config) -> Iterator[Problem]:
    """Source vectors need an embedding of their own."""
    model = dict(config.model)
    if model["tie_embeddings"] == "all" and model["src_vectors"] is not None:
        text = "tie_embeddings all has only one embedding; give model.tgt_vectors instead"
        yield Problem(("model.src_vectors", "model.tie_embeddings"), text)

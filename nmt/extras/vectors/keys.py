"""The keys of pretrained word vectors."""

from pathlib import Path

from pydantic import Field

from nmt.config.section import Section


class ModelKeys(Section):
    src_vectors: Path | None = Field(
        None, description="file of pretrained source embeddings: text or .vec, also .gz"
    )
    tgt_vectors: Path | None = Field(
        None, description="file of pretrained target embeddings: text or .vec, also .gz"
    )

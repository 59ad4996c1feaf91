"""The key training.alignment_loss."""

from pydantic import Field

from nmt.config.section import Section


class TrainingKeys(Section):
    alignment_loss: float = Field(
        0.0,
        ge=0,
        description="weight of guided alignment (Chen 2016): attention learns the word alignments "
        "of `model.lexical_bias`",
    )

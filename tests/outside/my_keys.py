"""Keys of an extra outside of nmt: sections that are joined to those of nmt."""

from pydantic import Field

from nmt.config.section import Section


class TrainingKeys(Section):
    """The weight of the term."""

    sharpness_loss: float = Field(0.0, ge=0, description="weight of the entropy of attention")


class DecodingKeys(Section):
    """The switch of the ranker."""

    shortest: bool = Field(False, description="take the shortest hypothesis of the beam")

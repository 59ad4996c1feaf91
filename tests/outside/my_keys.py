"""Keys of an extra outside of nmt: sections that are joined to those of nmt."""

from pydantic import Field

from nmt.config.section import Section


class TrainingKeys(Section):
    sharpness_loss: float = Field(0.0, ge=0, description="weight of the entropy of attention")


class DecodingKeys(Section):
    shortest: bool = Field(False, description="take the shortest hypothesis of the beam")

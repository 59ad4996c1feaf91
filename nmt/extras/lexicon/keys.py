"""The key decoding.shortlist."""

from pydantic import Field

from nmt.config.section import Section


class DecodingKeys(Section):
    shortlist: int = Field(
        0,
        ge=0,
        le=50,
        description=(
            "consider only this many translations of each source word (at most 50) and "
            "frequent words; 0: all"
        ),
    )

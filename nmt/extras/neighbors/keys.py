"""The keys decoding.neighbors."""

from pathlib import Path

from pydantic import Field

from nmt.config.section import Section


class NeighborsConfig(Section):
    pairs: int = Field(
        0,
        ge=0,
        le=1000,
        description=(
            "look at this many similar training pairs; `nmt neighbors` stores them in "
            "the run; 0: none"
        ),
    )
    weight: float = Field(
        0.6,
        ge=0,
        lt=1,
        description="how much the similar pairs count at most; the model has the rest",
    )
    distance: float = Field(
        0.08,
        gt=0,
        le=1000,
        description=(
            "mean squared distance to the nearest state in these pairs at which their "
            "weight becomes 0"
        ),
    )
    memory: Path | list[Path] | None = Field(
        None,
        description="file of your own pairs to look at, in place of those of the run (TMX, "
        "table, ...), or a pattern, a folder, a list; default: none",
    )


class DecodingKeys(Section):
    neighbors: NeighborsConfig = Field(
        NeighborsConfig(), description="nearest-neighbor translation (Khandelwal 2021)"
    )

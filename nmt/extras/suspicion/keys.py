"""The keys of data.cleaning for pairs that seem to be no translations."""

from typing import Literal

from pydantic import Field

from nmt.config.section import Section

Action = Literal["drop", "warn", "off"]
ACTIONS = "drop such pairs, warn, or off"


class CleaningKeys(Section):
    misaligned: Action = Field("warn", description=f"no translations of each other: {ACTIONS}")
    partial: Action = Field("warn", description=f"a part of the other side, or nothing: {ACTIONS}")
    copies: Action = Field("warn", description=f"both sides in one language: {ACTIONS}")
    other_language: Action = Field("warn", description=f"a third language: {ACTIONS}")
    boilerplate: Action = Field("warn", description=f"one text beside many others: {ACTIONS}")
    encoding: Action = Field("warn", description=f"damaged characters, as in `fÃ¼r`: {ACTIONS}")
    markup: Action = Field("warn", description=f"HTML on one side only: {ACTIONS}")
    worst: int = Field(0, ge=0, description="also list this many pairs with the worst scores")

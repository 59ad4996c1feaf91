"""The keys decoding.mbr and decoding.rerank."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from nmt.config.section import Section

Utility = Literal["chrf", "bleu"]


class MbrConfig(Section):
    utility: Utility = Field("chrf", description="similarity of two hypotheses: chrf or bleu")


class RerankConfig(Section):
    run: Path | None = Field(
        None,
        description=(
            "run or bundle of the opposite direction: choose among the hypotheses of the "
            "beam with its help; default: none"
        ),
    )
    weight: float = Field(
        0.2,
        ge=0,
        le=100,
        description="weight of its log-probability of the source, given the translation",
    )
    length_reward: float = Field(
        0.2, ge=-100, le=100, description="added to the score for each token of the translation"
    )


class DecodingKeys(Section):
    mbr: MbrConfig = Field(MbrConfig(), description="minimum Bayes risk decoding, for method mbr")
    rerank: RerankConfig = Field(
        RerankConfig(), description="reranking with a model of the opposite direction (Yee 2019)"
    )

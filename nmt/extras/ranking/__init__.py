"""Choose among the hypotheses: minimum Bayes risk, and a model of the opposite direction."""

from nmt.plugins import Extra, Part

EXTRA = Extra(
    keys={"decoding": "nmt.extras.ranking.keys:DecodingKeys"},
    rules="nmt.extras.ranking.ranker:rules",
    rank="nmt.extras.ranking.ranker:rank",
    rows={
        "methods": {
            "mbr": Part(
                text="mbr (the hypothesis that is most similar to the others)", tempered=True
            )
        }
    },
)

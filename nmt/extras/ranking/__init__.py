"""Choose among the hypotheses: minimum Bayes risk, and a model of the opposite direction."""

from nmt.plugins import Extra, Part

EXTRA = Extra(
    rows={
        "methods": {
            "mbr": Part(
                "nmt.extras.ranking.mbr:rank_by_expected_utility",
                text="mbr (the candidate that is most similar to the others)",
            )
        }
    }
)

"""Find pairs that seem to be no translations, among all pairs of `nmt prepare`."""

from nmt.plugins import Extra, Part

EXTRA = Extra(
    keys={"data.cleaning": "nmt.extras.suspicion.keys:CleaningKeys"},
    rows={
        "filters": {
            "suspicious": Part(
                "nmt.extras.suspicion.report:filter_pairs",
                rule="nmt.extras.suspicion.rules:number_of_reason",
                summary="nmt.extras.suspicion.report:summary_rows",
            )
        }
    },
)

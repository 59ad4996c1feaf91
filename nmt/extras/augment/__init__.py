"""Synthetic pairs for prepared training data, made by trained runs."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "augment": Command(
            "Data",
            "Add synthetic pairs to prepared training data. Trained runs translate them; the "
            "result is a new prepared folder.",
            "nmt.extras.augment.command:command",
        )
    }
)

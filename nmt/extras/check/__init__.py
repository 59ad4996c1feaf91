"""Compare translations with their sources, whoever translated them."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "check": Command(
            "Results",
            "Compare a translation with its source: numbers, placeholders, tags, terms, length. "
            "Exit status 1 if something was found.",
            "nmt.extras.check.command:command",
        )
    },
)

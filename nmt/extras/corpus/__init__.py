"""Translate a corpus in many files."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "translate-files": Command(
            "Translation",
            "Translate many files into a folder. It can be repeated, and run at the same time in "
            "array jobs.",
            "nmt.extras.corpus.command:command",
        )
    }
)

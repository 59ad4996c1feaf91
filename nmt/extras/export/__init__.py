"""Runs as a page that translates in any browser, or as a folder that needs no torch."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "export": Command(
            "Translation",
            "Export a run as a page that translates in any browser, or as a folder without torch.",
            "nmt.extras.export.command:command",
        )
    },
    needs=("page", "share"),
)

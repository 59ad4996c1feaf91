"""Runs as ONNX, with a translator that needs neither nmt nor torch."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "export": Command(
            "Translation",
            "Export a run as ONNX. The folder has a translator that needs neither nmt nor torch.",
            "nmt.extras.export.command:command",
        )
    },
    install="export",
)

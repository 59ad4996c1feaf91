"""Runs as a page that translates in any browser, or as ONNX."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "export": Command(
            "Translation",
            "Export a run as a page that translates in any browser, or as ONNX.",
            "nmt.extras.export.command:command",
        )
    },
    install="export",
    needs=("page",),
)

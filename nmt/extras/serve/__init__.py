"""A web page and a JSON API that translate with trained runs."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "serve": Command(
            "Translation",
            "Serve a page that translates while you type, and a JSON API.",
            "nmt.extras.serve.command:command",
        )
    },
    install="serve",
    needs=("documents", "init", "page"),
)

"""What is behind the scores of a system."""

from nmt.plugins import Command, Extra, Part

EXTRA = Extra(
    commands={
        "analyze": Command(
            "Results",
            "Find what is behind the scores: groups, leaks, significance tests against another "
            "system, attention.",
            "nmt.extras.analysis.command:command",
        )
    },
    rows={
        "views": {
            "notebook": Part("nmt.extras.analysis.html:notebook_view"),
            "page": Part("nmt.extras.analysis.html:attention_page"),
        }
    },
    install="analysis",
    needs=("page",),
)

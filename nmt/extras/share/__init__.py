"""Give a run to others, as one file."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "share": Command("Results", "Pack a run into one file.", ""),
        "share bundle": Command(
            "Commands",
            "Pack all that translating needs into one file. `nmt translate --run FILE` and "
            "`nmt.load` take it.",
            "nmt.extras.share.bundle:command",
        ),
    },
    archive="nmt.extras.share.bundle:unpacked",
)

"""Give a run to others: as one file, or on the Hugging Face hub."""

from nmt.plugins import Command, Extra

COMMANDS = {
    "bundle": (
        "Pack all that translating needs into one file. `nmt translate --run FILE` and `nmt.load` "
        "take it.",
        "nmt.extras.share.bundle:command",
    ),
    "push": (
        "Publish a run on the Hugging Face hub. With a model card; its access token comes from "
        "`hf auth login`.",
        "nmt.extras.share.hub:push_command",
    ),
    "pull": (
        "Download a run from the Hugging Face hub. It translates as the run that was published.",
        "nmt.extras.share.hub:pull_command",
    ),
}
EXTRA = Extra(
    commands={
        "share": Command("Results", "Pack a run into one file, publish it, or download one.", ""),
        **{f"share {name}": Command("Commands", *row) for name, row in COMMANDS.items()},
    },
    archive="nmt.extras.share.bundle:unpacked",
    install="hub",
    needs=("runs",),
)

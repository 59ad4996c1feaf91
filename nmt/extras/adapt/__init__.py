"""One's own memory: a run that is better on it, and nearly as good as before on all else."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "adapt": Command(
            "Training",
            "Adapt a run to your own translation memory. The new run translates texts like yours "
            "better, and others nearly as well as before.",
            "nmt.extras.adapt.command:command",
        )
    },
    needs=("init",),
)

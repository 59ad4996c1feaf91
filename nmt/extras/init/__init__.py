"""First steps: a starter project, and a configuration for one's own sentence pairs."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "init": Command(
            "Data",
            "Write a starter project. With --data, a configuration for your own sentence pairs; "
            "without, the sample of nmt.",
            "nmt.extras.init.command:command",
        ),
    },
    needs=("suspicion",),
)

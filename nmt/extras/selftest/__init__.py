"""A test of the installation: tiny models must learn to copy and to reverse."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "selftest": Command(
            "Set-up",
            "Test this installation. Trains a tiny model with each kind of attention. Exit status "
            "1 if one does not learn.",
            "nmt.extras.selftest.command:command",
        )
    }
)

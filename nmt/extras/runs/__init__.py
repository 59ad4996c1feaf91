"""Look at runs: what they are, and whether their files are whole."""

from nmt.plugins import Command, Extra

COMMANDS = {
    "show": (
        "Show a run: its settings, data, checkpoints, scores and size.",
        "nmt.extras.runs.inspect:command",
    ),
    "list": (
        "List runs as a table. Model, steps, scores, size and date of each.",
        "nmt.extras.runs.listing:list_command",
    ),
    "check": (
        "Check all files of a run, a bundle or prepared data. Says what is damaged, and what to "
        "do; exit status 1 if one is damaged.",
        "nmt.extras.runs.check:command",
    ),
    "average": (
        "Average the weights of a run's kept checkpoints. The average is used if it is better on "
        "the dev set.",
        "nmt.extras.runs.after_training:average_command",
    ),
    "calibrate": (
        "Measure on the dev set how probable it is that a translation is good, for "
        "--least-confidence.",
        "nmt.extras.runs.after_training:calibrate_command",
    ),
}
EXTRA = Extra(
    commands={
        "runs": Command("Results", "Show, list, check, average and calibrate runs.", ""),
        **{f"runs {name}": Command("Commands", *row) for name, row in COMMANDS.items()},
    }
)

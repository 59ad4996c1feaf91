"""A lexicon of a run: it translates unknown words, and shortens the list of candidates."""

from nmt.plugins import Command, Extra

EXTRA = Extra(
    commands={
        "lexicon": Command(
            "Translation",
            "Learn a lexicon from a run's data. It translates unknown words and makes "
            "decoding.shortlist possible.",
            "nmt.extras.lexicon.command:command",
        )
    }
)

"""Words that tell two languages apart."""

import pytest

from nmt.data.function_words import count_words


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("The dog and the cat are here.", (4, 0)),  # different words: the, and, are, here
        ("Der Hund und die Katze sind hier.", (0, 5)),
        ("Hamburg", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_words_of_one_language_are_counted(text: str, counts: tuple[int, int]) -> None:
    assert count_words(text, ("en", "de")) == counts
    assert count_words(text, ("de", "en")) == counts[::-1]


@pytest.mark.parametrize("languages", [("en", "en"), ("qra", "qso"), ("", "")])
def test_equal_or_unknown_languages_have_no_such_words(languages: tuple[str, str]) -> None:
    assert count_words("The dog and the cat are here.", languages) == (0, 0)


def test_one_unknown_language_leaves_the_words_of_the_other() -> None:
    assert count_words("The dog and the cat are here.", ("en", "qso")) == (4, 0)

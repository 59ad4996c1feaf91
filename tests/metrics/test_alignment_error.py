"""nmt.metrics.alignment_error."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.metrics.alignment_error import Gold, alignment_error, check_links, read_gold


def write(folder: Path, text: str) -> Path:
    path = folder / "gold.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_sure_and_possible_links(tmp_path: Path) -> None:
    first, second = read_gold(write(tmp_path, "0-0 1?2\n\n"), 2)
    assert first == Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))
    assert second == Gold(frozenset(), frozenset())


def test_the_rate_by_hand() -> None:
    gold = [Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)})), Gold(frozenset(), frozenset())]
    found = [frozenset({(0, 0), (2, 1), (3, 3)}), frozenset({(0, 0)})]
    # A & S = 1, A & P = 2, |A| = 3, |S| = 2; the second sentence has no links by hand, and does not count.
    result = alignment_error(found, gold)
    assert result.rate == pytest.approx(1 - 3 / 5)
    assert result.sentences == 1
    assert alignment_error([gold[0].sure, frozenset()], gold).rate == 0
    assert alignment_error([frozenset({(5, 5)}), frozenset()], gold).rate == 1
    with pytest.raises(DataError, match="looks at no word"):
        alignment_error([frozenset(), frozenset()], gold)


def test_links_go_to_words_that_are_there() -> None:
    gold = [Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))]
    check_links(gold, ["a b"], ["c d e"])
    text = "line 1: a link to a word that is not there; the source has 2 and the reference 2 words, counted from 0"
    with pytest.raises(DataError, match=text):
        check_links(gold, ["a b"], ["c d"])


def test_what_is_no_alignment(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"gold\.txt, line 2: '1:2' is no link; write source-target, such as 0-0, or 0\?0 if it is "
    ):
        read_gold(write(tmp_path, "0-0\n1:2\n"), 2)
    with pytest.raises(DataError, match=r"gold\.txt has 2 lines, but there are 3 sentences to align$"):
        read_gold(write(tmp_path, "0-0\n1-2\n"), 3)
    with pytest.raises(DataError, match="not one link by hand"):
        alignment_error([frozenset()], [Gold(frozenset(), frozenset())])

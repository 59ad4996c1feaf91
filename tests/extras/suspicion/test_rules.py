"""What is wrong by itself, and what only looks so."""

import pytest

from nmt.extras.suspicion.rules import Reason, reason_of

PAGES = ("cp1250", "cp1251", "cp437", "cp866")


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("for you", "fÃ¼r dich", "encoding"),
        ("Austria", "Ã–sterreich", "encoding"),
        ("a street", "StraÃ\x9fe", "encoding"),
        ("Wait…", "Warte â\x80¦", "encoding"),
        ("It’s late.", "Itâ€™s late.", "encoding"),
        ("the “file”", "die Â»%sÂ« Datei", "encoding"),
        ("hello", "Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "encoding"),
        ("hello", "æ—¥æœ¬", "encoding"),
        ("for you", "f\ufffdr dich", "encoding"),
        *(("for you", "für".encode().decode(page), "encoding") for page in PAGES),
        *(("hello", "привет".encode().decode(page), "encoding") for page in ("cp1251", "cp866")),
        ("the letter “Ä”", "der Buchstabe „Ä“", None),
        ("my sister", "«MINHA IRMû", None),
        ("It is 3 Å² large.", "Es ist 3 Å² groß.", None),
        ("To be… or not", "Å… være eller ikke", None),
        ("A dog", "<p>Ein Hund</p>", "markup"),
        ("A dog", "Ein Hund&nbsp;&nbsp;&raquo;", "markup"),
        ("A dog", "[[Ein Hund]]", "markup"),
        ("A dog", "Ein Hund</section>", "markup"),
        ("A dog", "[b]Ein Hund[/b]", "markup"),
        ("for you", "f&uuml;r dich", "markup"),
        ("for you", "f&amp;uuml;r dich", "markup"),
        ("<b>A</b> dog", "<b>Ein</b> Hund", None),
        ("Name:", "Nom&nbsp;:", None),
        ("&quot;dog&quot;", "„Hund“", None),
        ("[A[:B]]", "X [:Y]", None),
        ("if a < b and c > d", "wenn a < b und c > d", None),
        ("This is a long text.", "TODO", "partial"),
        ("1", "I saw three dogs there.", "partial"),
        ("Not available", "N/A", None),
        ("one hundred", "100", None),
        ("half past seven", "7:30", None),
        ("?", "؟", None),
        (", ", "，", None),
    ],
)
def test_reasons(src: str, tgt: str, reason: Reason | None) -> None:
    assert reason_of(src, tgt) == reason
    assert reason_of(tgt, src) == reason

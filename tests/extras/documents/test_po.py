"""Catalogs of gettext."""

import shutil
import subprocess
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.extras.documents.document import open_document
from tests.extras.documents.catalogs import document, into, texts, translated

HEADER = """msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""
CATALOG = f"""# Our own catalog
{HEADER}#. Shown in the menu
#: main.c:10
msgctxt "menu"
msgid "Open the file"
msgstr ""

#: main.c:12
#, c-format
#| msgid "Delete"
msgid "Delete %s?\\n"
msgstr ""

#| msgid "Hello"
msgid ""
"A long message which stands on several lines of the file, since it has more than "
"eighty characters.\\n"
"Its second line has \\"quotes\\" and a tab:\\t."
msgstr ""

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "Save"
msgstr "Sichern"

msgid "Close"
msgstr "Schließen"

#, fuzzy
#~ msgid "Old"
#~ msgstr "Alt"
"""


def test_empty_targets_are_filled_and_marked_as_fuzzy() -> None:
    result = translated("x.po", CATALOG)
    before, after = polib.pofile(CATALOG), polib.pofile(result)
    assert [(e.msgid, e.msgctxt, e.previous_msgid, e.occurrences, e.obsolete) for e in after] == [
        (e.msgid, e.msgctxt, e.previous_msgid, e.occurrences, e.obsolete) for e in before
    ]
    assert [entry.msgstr for entry in after] == [
        "OPEN THE FILE",
        "DELETE %S?\n",
        "A LONG MESSAGE WHICH STANDS ON SEVERAL LINES OF THE FILE, SINCE IT HAS MORE THAN EIGHTY "
        'CHARACTERS.\nITS SECOND LINE HAS "QUOTES" AND A TAB:\t.',
        "",
        "Sichern",
        "Schließen",
        "Alt",
    ]
    assert after[3].msgstr_plural == {0: "ONE FILE", 1: "%D FILES"}
    assert [entry.flags for entry in after[:5]] == [
        *(["fuzzy"], ["fuzzy", "c-format"], ["fuzzy"], ["fuzzy"], ["fuzzy"])
    ]
    assert after.metadata == before.metadata
    assert '#: main.c:10\n#, fuzzy\nmsgctxt "menu"\n' in result
    assert '#: main.c:12\n#, fuzzy, c-format\n#| msgid "Delete"\n' in result
    assert '\n#, fuzzy\n#| msgid "Hello"\nmsgid ""\n' in result
    assert result.endswith(CATALOG[CATALOG.index('#, fuzzy\nmsgid "Save"') :])


def test_all_targets_may_be_filled() -> None:
    after = polib.pofile(translated("x.po", CATALOG, fill_all=True))
    assert [entry.msgstr for entry in after[4:6]] == ["SAVE", "CLOSE"]
    assert [entry.flags for entry in after[4:6]] == [["fuzzy"], ["fuzzy"]]


def test_the_targets_of_a_file_give_the_same_bytes() -> None:
    catalog = translated("x.po", CATALOG)
    found = document("x.po", catalog, fill_all=True)
    targets = [segment.target for segment in found.segments]
    assert b"".join(found.written(filter(None, targets))).decode() == catalog


def test_lines_are_as_long_as_those_of_gettext() -> None:
    sentence = "This sentence is long enough for a second line of the file, as everybody can see."
    catalog = f'{HEADER}msgid "Short"\nmsgstr ""\n'
    assert into(sentence)("x.po", catalog).endswith(
        'msgstr ""\n'
        '"This sentence is long enough for a second line of the file, as everybody can "\n'
        '"see."\n'
    )
    # A file whose lines are not divided keeps that style.
    catalog = f'{HEADER}msgid "{sentence}"\nmsgstr ""\n'
    assert into(sentence)("x.po", catalog).endswith(f'msgstr "{sentence}"\n')


def test_the_missing_forms_of_a_plural_are_added() -> None:
    header = HEADER.replace("nplurals=2", "nplurals=3")
    catalog = f'{header}msgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    entry = polib.pofile(translated("x.po", catalog))[0]
    assert entry.msgstr_plural == {0: "A DOG", 1: "%D DOGS", 2: "%D DOGS"}


def test_a_template_becomes_a_catalog_of_utf8() -> None:
    template = (
        '#, fuzzy\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
        '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
        'msgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    )
    found = document("x.pot", template)
    assert found.remarks == [
        "line 7: has no number of plural forms (nplurals in its header); add it, and the forms"
    ]
    result = into("ein Hündchen", "%d Hündchen")("x.pot", template)
    assert "charset=UTF-8" in result
    assert polib.pofile(result)[0].msgstr_plural == {0: "ein Hündchen", 1: "%d Hündchen"}


@pytest.mark.parametrize(
    ("source", "text", "translation", "target"),
    [
        ("_Open", "Open", "Öffnen", "_Öffnen"),
        ("E_xit", "Exit", "Beenden", "_Beenden"),
        ("Save &as...", "Save as...", "Speichern unter", "&Speichern unter"),
        ("_Delete %s", "Delete %s", "%s löschen", "%s _löschen"),
        ("Cut && paste", "Cut & paste", "Schneiden & kleben", "Schneiden && kleben"),
        ("See /Main_page", "See /Main_page", "Siehe /Main_page", "Siehe /Main_page"),
        ("Wrong user_id", "Wrong user_id", "Falsche user_id", "Falsche user_id"),
        (
            "Read <a target='_blank'>it</a>",
            "Read <a target='_blank'>it</a>",
            "Lies <a target='_blank'>es</a>",
            "Lies <a target='_blank'>es</a>",
        ),
        ("Research by R&D", "Research by R&D", "Studie von R&D", "Studie von R&D"),
        ("Cats &amp; dogs", "Cats &amp; dogs", "Katz &amp; Hund", "Katz &amp; Hund"),
        ("one dog|%d dogs", "one dog\n\n%d dogs", "ein Hund\n\n%d Hunde", "ein Hund|%d Hunde"),
        ("  Spaces:\\n", "Spaces:", "Raum:", "  Raum:\\n"),
    ],
)
def test_accelerators_and_edges(source: str, text: str, translation: str, target: str) -> None:
    catalog = f'{HEADER}msgid "{source}"\nmsgstr ""\n'
    assert texts("x.po", catalog) == [text]
    assert into(translation)("x.po", catalog).endswith(f'msgstr "{target}"\n')


def test_a_message_with_forms_stays_with_a_remark() -> None:
    catalog = f'{HEADER}msgid "{{n, plural, one {{a dog}} other {{# dogs}}}}"\nmsgstr ""\n'
    found = document("x.po", catalog)
    assert found.segments == []
    assert found.remarks == ["line 7: has plural or select forms in braces; translate it by hand"]


def test_what_is_no_catalog_is_an_error() -> None:
    with pytest.raises(DataError, match=r"x\.po, line 8: is not of a message catalog"):
        document("x.po", f'{HEADER}msgid "a"\nThis is a line.\n')


def test_line_ends_and_the_encoding_of_the_header_stay() -> None:
    catalog = CATALOG.replace("UTF-8", "ISO-8859-1").replace("\n", "\r\n").encode("latin-1")
    found = open_document(catalog, "x.po")
    result = b"".join(found.written([segment.text for segment in found.segments]))
    assert b"Schlie\xdfen" in result
    assert result.count(b"\r\n") == result.count(b"\n")


@given(source=st.text('aZ \\"\t%_&ä日\n', min_size=1, max_size=200), is_plural=st.booleans())
def test_any_text_is_read_back(source: str, is_plural: bool) -> None:
    entry = polib.POEntry(msgid=source, msgstr="")
    if is_plural:
        entry = polib.POEntry(msgid=source, msgid_plural="b", msgstr_plural={0: "", 1: ""})
    catalog = f"{HEADER}{entry}"
    if source.isspace():
        return
    result = polib.pofile(into(*texts("x.po", catalog))("x.po", catalog))[0]
    written = result.msgstr_plural[0] if is_plural else result.msgstr
    assert written.replace("_", "").replace("&", "") == source.replace("_", "").replace("&", "")
    assert result.msgid == source


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_gettext_reads_the_result(tmp_path: Path) -> None:
    (tmp_path / "x.po").write_text(translated("x.po", CATALOG, lambda text: f"{text}ß"), "utf-8")
    subprocess.run(["msgfmt", "-c", "-o", tmp_path / "x.mo", tmp_path / "x.po"], check=True)

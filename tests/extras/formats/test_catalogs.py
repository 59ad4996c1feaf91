"""nmt.extras.formats.catalogs: PO and XLIFF as pairs."""

from pathlib import Path

import pytest

from nmt.config.schema import SourceConfig
from nmt.data.formats import open_source
from nmt.errors import DataError
from tests.data.packing import gzipped, plain

CATALOG = """\
# A comment
msgid ""
msgstr ""
"Language: de_AT\\n"
"Content-Type: text/plain; charset=ISO-8859-1\\n"

#: main.c:1
msgid "_Open"
msgstr "_Öffnen"

#, fuzzy
msgid "Save"
msgstr "Sichern"

msgid "Empty"
msgstr ""

msgid "one file\\n"
msgid_plural "%d files\\n"
msgstr[0] "eine Datei\\n"
msgstr[1] ""
"%d "
"Dateien\\n"

msgid "a"
msgid_plural "b"
msgstr[0] "c"
msgstr[1] ""

#~ msgid "Old"
#~ msgstr "Alt"
"""
UNITS = """<xliff version="1.2"><file source-language="en-US" target-language="de-DE"><body>
<trans-unit id="1"><source>Open <g id="1">it</g> &amp; go</source>
<target>Auf &amp; los</target></trans-unit>
<trans-unit id="2"><source>Hi</source></trans-unit>
<trans-unit id="3"><source>Yes</source><target/></trans-unit>
<trans-unit id="4"><source>No</source>
  <target state="needs-review-translation">Nicht</target></trans-unit>
</body></file></xliff>"""


def pairs(
    path: Path, kind: str, languages: tuple[str, str] = ("en", "de")
) -> list[tuple[str, str] | None]:
    (source,) = open_source(SourceConfig(format=kind), {"": [path]}, languages)
    return [source.pair(row) for row in source.rows()]


def test_catalogs(tmp_path: Path) -> None:
    path = gzipped(tmp_path / "app.po.gz", CATALOG.encode("latin-1"))
    expected = [("Open", "Öffnen"), ("one file", "eine Datei"), ("%d files", "%d Dateien")]
    assert pairs(path, "po") == expected
    assert pairs(path, "po", ("de", "en")) == [(tgt, src) for src, tgt in expected]
    with pytest.raises(DataError, match="has texts in de, not in en and fr"):
        pairs(path, "po", ("en", "fr"))


def test_the_language_may_be_in_the_name(tmp_path: Path) -> None:
    path = plain(tmp_path / "app.de.po", b'msgid "dog"\nmsgstr "Hund"\n')
    assert pairs(path, "po", ("de", "en")) == [("Hund", "dog")]
    assert pairs(path, "po", ("en", "nl")) == [("dog", "Hund")]


def test_xliff(tmp_path: Path) -> None:
    path = plain(tmp_path / "a.xlf", UNITS.encode())
    assert pairs(path, "xliff") == [("Open it & go", "Auf & los")]
    assert pairs(path, "xliff", ("de", "en")) == [("Auf & los", "Open it & go")]
    with pytest.raises(DataError, match="has texts in de and en, not in fr and es"):
        pairs(path, "xliff", ("fr", "es"))


@pytest.mark.parametrize(
    ("kind", "content", "problem"),
    [
        ("po", 'msgid "a"\nno line', "line 2: is not of a message catalog"),
        ("xliff", "<xliff>", "is not well-formed XML"),
    ],
)
def test_errors(tmp_path: Path, kind: str, content: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        pairs(plain(tmp_path / "a", content.encode()), kind)

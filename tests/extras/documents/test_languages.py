"""What documents say of their language."""

import gettext
import re
from dataclasses import replace

import pytest

from nmt.extras.documents.languages import RULES
from nmt.texts.warnings import describe
from tests.extras.documents.examples import PO_HEADER, SEGMENTS, replaced, unit
from tests.extras.documents.rewriting import document

PAGE, SOURCE = (
    '<html{}>\n<body{}>\n<p>dog</p><p lang="la">1</p></body></html>',
    "<source>dog</source>",
)
FORMS = "Plural-Forms: nplurals=2; plural=(n != 1);\\n"
PLURAL = 'msgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
FEW = "line 2: has 2 plural forms (nplurals in its header), which may not be those of"
CATALOG = f"{PO_HEADER}{PLURAL}"


def header(language: str, forms: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """What changes in the header of the catalog."""
    return ("Language: de", f"Language: {language}"), ("nplurals=2; plural=(n != 1);", forms)


@pytest.mark.parametrize(
    ("name", "file", "direction", "changes"),
    [
        ("a.html", PAGE.format(' lang="en-US"', ""), "en-de", [('"en-US"', '"de"')]),
        ("a.html", PAGE.format("", " DIR=ltr"), "en-fa", [("=ltr", '="rtl"')]),
        ("a.html", PAGE.format(" LANG='en'", ""), "en-de", [("'en'", '"de"')]),
        (
            "a.html",
            PAGE.format(' lang="fa" dir="rtl"', ""),
            "fa-en",
            [("fa", "en"), ("rtl", "ltr")],
        ),
        ("a.html", PAGE.format(' lang="{{ code }}" dir="auto"', ""), "en-ar", []),
        (
            "a.html",
            PAGE.format(' xml:lang="en" lang=""', ""),
            "en-de",
            [('"en"', '"de"'), ('""', '"de"')],
        ),
        (
            "a.html",
            '<p lang="en">one <b lang="en">two</b></p>',
            "en-de",
            [("en", "de"), ("en", "de")],
        ),
        (
            "a.html",
            '<p>1 a</p><pre lang="en">b</pre><p lang="en" translate="no">c</p>',
            "en-de",
            [],
        ),
        (
            "a.html",
            '<meta http-equiv="Content-Language" content="en"><p>a</p>',
            "en-de",
            [('"en"', '"de"')],
        ),
        ("a.html", PAGE.format(' lang="en" translate="no"', ""), "en-de", []),
        ("a.xlf", unit(SOURCE), "en-de", []),
        (
            "a.xlf",
            unit(SOURCE).replace('="de"', '="en"'),
            "en-de",
            [('target-language="en"', 'target-language="de"')],
        ),
        (
            "a.xlf",
            unit(SOURCE).replace(' target-language="de"', ""),
            "en-de",
            [("<file ", '<file target-language="de" ')],
        ),
        (
            "a.xlf",
            SEGMENTS.replace(' trgLang="de"', ""),
            "en-de",
            [("<xliff ", '<xliff trgLang="de" ')],
        ),
        ("a.po", CATALOG, "en-de", []),
        ("a.po", CATALOG.replace("UTF-8", "CHARSET"), "en-de", [("CHARSET", "UTF-8")]),
        (
            "a.po",
            replaced(CATALOG, ("Language: de", "Language: de_AT@x"), ("(n != 1)", "n!=1")),
            "en-de",
            [],
        ),
        (
            "a.po",
            replaced(CATALOG, *header("en_GB", "nplurals=2; plural=(n != 1);")),
            "en-fr",
            [("en_GB", "fr"), ("!= 1", "> 1")],
        ),
        (
            "a.po",
            replaced(CATALOG, *header("", "nplurals=INTEGER; plural=EXPRESSION;")),
            "en-nl",
            [("Language: ", "Language: nl"), ("INTEGER", "2"), ("EXPRESSION", "(n != 1)")],
        ),
        (
            "a.po",
            CATALOG.replace('"Language: de\\n"\n', ""),
            "en-de",
            [('msgstr "', 'msgstr "Language: de\\n')],
        ),
        ("a.po", CATALOG.replace(f'"{FORMS}"\n', ""), "en-de", [('msgstr "', f'msgstr "{FORMS}')]),
        (
            "a.po",
            f'msgid ""\nmsgstr "Language: \\n"\n\n{PLURAL}',
            "en-de",
            [("Language: ", "Language: de"), ('msgstr "', f'msgstr "{FORMS}')],
        ),
        (
            "a.po",
            'msgid ""\nmsgstr "Language: \\n"\n\nmsgid "dog"\nmsgstr ""\n',
            "en-de",
            [("Language: ", "Language: de")],
        ),
    ],
)
def test_a_file_says_the_language_of_its_translation(
    name: str, file: str, direction: str, changes: list[tuple[str, str]]
) -> None:
    src, tgt = direction.split("-")
    after = document(name, file, (src, tgt))
    expected = file
    for old, new in changes:
        expected = expected.replace(old, new, 1)
    if direction == "en-fa":
        expected = expected.replace("<html", '<html dir="rtl" lang="fa"')
    assert after.content.text == expected
    assert (after.remarks, after.lines) == ({}, document(name, file).lines)


@pytest.mark.parametrize(
    ("name", "file", "direction", "remark"),
    [
        (
            "a.html",
            PAGE.format(' lang="fr"', ""),
            "en-de",
            "line 1: names the language fr, but the run translates en to de",
        ),
        (
            "a.xlf",
            unit(SOURCE),
            "en-fr",
            "line 3: names the language de, but the run translates en to fr",
        ),
        (
            "a.xlf",
            SEGMENTS,
            "sv-de",
            "line 1: names the language en, but the run translates sv to de",
        ),
        (
            "a.po",
            CATALOG,
            "en-fr",
            "line 3: names the language de, but the run translates en to fr",
        ),
        (
            "a.po",
            replaced(CATALOG, *header("ru", "nplurals=2; plural=0;")),
            "en-ru",
            f"{FEW} ru",
        ),
        (
            "a.po",
            CATALOG.replace("Language: de", "Language: en"),
            "en-tlh",
            f"{FEW} tlh",
        ),
    ],
)
def test_a_file_in_another_language_stays_and_is_named(
    name: str, file: str, direction: str, remark: str
) -> None:
    src, tgt = direction.split("-")
    after = document(name, file, (src, tgt))
    assert after.content.text in (file, file.replace("Language: en", "Language: tlh"))
    (found,) = after.remarks.items()
    assert describe(*found, after.unit).startswith(remark)


@pytest.mark.parametrize(("target", "forms"), [("ja", 1), ("de", 2), ("ru", 3)])
def test_messages_get_the_plural_forms_of_the_target(target: str, forms: int) -> None:
    file = replaced(CATALOG, *header("", "nplurals=2; plural=(n != 1);"))
    found = document("a.po", file, ("en", target))
    new = [replace(each.text, text=each.text.text.upper()) for each in found.segments]
    text = b"".join(found.written(new)).decode()
    last = ["A DOG", *["%D DOGS"] * 5][: max(forms, 2)][-forms:]
    assert re.findall(r'msgstr\[\d\] "(.*)"', text) == last
    assert f"nplurals={forms};" in text


@pytest.mark.parametrize("rule", RULES)
def test_rules_of_plural_forms_are_those_of_gettext(rule: str) -> None:
    number, formula = re.fullmatch(r"nplurals=(\d); plural=(.*);", rule).groups()  # type: ignore[union-attr]
    used = {*map(gettext.c2py(formula), range(1000))}
    assert used == {*range(int(number))}

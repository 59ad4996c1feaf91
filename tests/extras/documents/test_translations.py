"""All formats: how a translation is written."""

import pytest

from nmt.errors import DataError
from nmt.texts.marked import Kind, Mark, Marked
from tests.extras.documents import examples
from tests.extras.documents.examples import PO_HEADER, STRING, cue, message, replaced, unit
from tests.extras.documents.rewriting import changed, document, texts, translated

PAGE = '<meta charset="iso-8859-1"><p>{}</p>\r\n'
PLURALS = 'msgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] "{}"\nmsgstr[1] "{}"\n'
LONG = "This sentence is long enough for a second line of the file, as everybody can see."


def marked(text: str, *marks: tuple[int, str, Kind]) -> Marked:
    return Marked(text, tuple(Mark(*each) for each in marks))


@pytest.mark.parametrize(
    ("name", "file", "translations", "after"),
    [
        (
            "strings.xml",
            STRING.format("Hi"),
            ['?l\'"a" \\ <b> & \n'],
            STRING.format(r"\?l\'\"a\" \\ &lt;b&gt; &amp; \n"),
        ),
        (
            "x.html",
            "<p>Press <kbd>F1</kbd> or <b>wait</b>.</p>",
            [
                marked(
                    "Warten oder ",
                    (0, "<b>", "open"),
                    (6, "</b>", "close"),
                    (12, "<kbd>F1</kbd>", "item"),
                )
            ],
            "<p><b>Warten</b> oder <kbd>F1</kbd></p>",
        ),
        (
            "x.html",
            examples.LINKS,
            [
                "Start",
                "End",
                marked(
                    "See it and that.",
                    (4, '<a title="Home" href="Home">', "open"),
                    (6, "</a>", "close"),
                    (11, '<a title="End" href="Home">', "open"),
                    (15, "</a>", "close"),
                ),
            ],
            examples.LINKS.replace('title="Home"', 'title="Start"'),
        ),
        # The flag belongs to the message, not to the domain before it.
        (
            "x.po",
            'domain "x"\nmsgid "Dog"\nmsgstr ""\n',
            ["Hund"],
            'domain "x"\n#, fuzzy\nmsgid "Dog"\nmsgstr "Hund"\n',
        ),
        # Characters are written as the file does.
        ("en.json", '{"a": "Door"}', ["Tür"], '{"a": "Tür"}'),
        ("en.json", r'{"a": "Door", "\u00e4": 1}', ["Tür"], r'{"a": "T\u00fcr", "\u00e4": 1}'),
        ("en.json", '{"a": "_Site && more"}', ["&& _x"], '{"a": "&& _x"}'),
        ("m.properties", "# é\na=Door", ["Tür"], "# é\na=Tür"),
        # Apostrophes of patterns are doubled.
        ("m.properties", "a=It is {0}", ["C'est {0}"], "a=C''est {0}"),
        ("m.properties", "a=It is so", ["C'est ça"], r"a=C'est \u00e7a"),
        # Words of Markdown are not read as markup.
        ("x.md", "Text", ["1. Punkt"], r"1\. Punkt"),
        ("x.md", "Text", ["# Titel"], r"\# Titel"),
        ("x.md", "Text", ["- Strich"], r"\- Strich"),
        ("x.md", "Text", ["a <b> c"], r"a \<b> c"),
        ("x.md", "Text", ["*a* [b](c) `d`"], r"\*a\* \[b\](c) \`d\`"),
        ("x.md", "Text", ["2 * 3 < 4 & a_b"], "2 * 3 < 4 & a_b"),
        ("x.md", "Text", [r"C:\*"], r"C:\\\*"),
        ("x.md", "Text", ["a &amp; b"], r"a \&amp; b"),
        ("x.md", "Text", ["a | b"], "a | b"),
        # Emphasis inside a word has stars, ends before a word, and is left out around nothing.
        (
            "x.md",
            "The _new_ list",
            [marked("Neuliste", (0, "_", "open"), (3, "_", "close"))],
            "*Neu*liste",
        ),
        (
            "x.md",
            "**Note:** read it",
            [marked("Note:15 mal", (0, "**", "open"), (5, "**", "close"))],
            "**Note:** 15 mal",
        ),
        (
            "x.md",
            "The **new** list",
            [marked("Die Liste", (4, "**", "open"), (4, "**", "close"))],
            "Die Liste",
        ),
        # Code beside code gets a space, and a link by its code keeps its target.
        (
            "x.md",
            "The `a` or `b`",
            [marked("Das oder", (3, "`a`", "item"), (3, "`b`", "item"))],
            "Das `a` `b` oder",
        ),
        (
            "x.md",
            "Use [`a`] now\n\n[`a`]: u\n",
            [marked("Nimm  nun", (5, "[", "open"), (5, "`a`", "item"), (5, "][`a`]", "close"))],
            "Nimm [`a`][] nun\n\n[`a`]: u\n",
        ),
        (
            "x.md",
            "Use [`a`] now\n\n[`a`]: u\n",
            [marked("Nutze jetzt", (0, "[", "open"), (4, "`a`", "item"), (5, "][`a`]", "close"))],
            "[Nutz`a`e][`a`] jetzt\n\n[`a`]: u\n",
        ),
        # A paragraph is wrapped as it was.
        ("x.md", "> one or\r\n> two\r\n", ["eins oder zwei"], "> eins\r\n> oder\r\n> zwei\r\n"),
        (
            "x.md",
            "- > some words that are\n  > on two lines",
            ["einige Worte - 1. und mehr, die auf zwei Zeilen stehen"],
            "- > einige Worte - 1.\n  > und mehr, die auf\n  > zwei Zeilen stehen",
        ),
        # Lines are as long as those of gettext, unless those of the file are not divided.
        (
            "x.po",
            message("Short"),
            [LONG],
            message("Short", f'"\n"{LONG[:-4]}"\n"see.'),
        ),
        ("x.po", message(LONG), [LONG], message(LONG, LONG)),
        # The missing forms of a plural are added.
        (
            "x.po",
            f"{PO_HEADER.replace('=2', '=3')}{PLURALS.format('', '')}",
            ["ein Hund", "%d Hunde"],
            f"{PO_HEADER.replace('=2', '=3')}#, fuzzy\n{PLURALS.format('ein Hund', '%d Hunde')}"
            'msgstr[2] "%d Hunde"\n',
        ),
        (
            "x.pot",
            examples.TEMPLATE,
            ["ein Hündchen", "%d Hündchen"],
            replaced(
                examples.TEMPLATE,
                ('msgid "a dog"', '#, fuzzy\nmsgid "a dog"'),
                ('[0] ""', '[0] "ein Hündchen"'),
                ('[1] ""', '[1] "%d Hündchen"'),
            ),
        ),
        # The lines of a subtitle are about as long as each other.
        ("x.srt", cue("One line"), ["Nur eine Zeile"], cue("Nur eine Zeile")),
        (
            "x.srt",
            cue("Two", "lines"),
            ["Das sind zwei kurze Zeilen"],
            cue("Das sind zwei", "kurze Zeilen"),
        ),
        ("x.srt", cue("Two", "lines"), ["Wort"], cue("Wort")),
        (
            "x.srt",
            cue("A short line"),
            ["Das wird nun aber eine recht lange Zeile für einen Film"],
            cue("Das wird nun aber eine recht", "lange Zeile für einen Film"),
        ),
        (
            "x.srt",
            cue("These", "lines"),
            [
                marked(
                    "Das sind Zeilen",
                    (4, '<font color="#ffffff">', "open"),
                    (9, "</font>", "close"),
                )
            ],
            cue('Das <font color="#ffffff">sind', "</font>Zeilen"),
        ),
        (
            "x.xlf",
            unit('<source>One <g id="1">dog</g></source>'),
            [marked("Hund & <1>", (0, '<g id="1">', "open"), (4, "</g>", "close"))],
            unit(
                '<source>One <g id="1">dog</g></source><target state="needs-review-translation">'
                '<g id="1">Hund</g> &amp; &lt;1&gt;</target>'
            ),
        ),
    ],
)
def test_a_translation_is_written(
    name: str, file: str, translations: list[Marked | str], after: str
) -> None:
    assert translated(name, file, translations).decode() == after


@pytest.mark.parametrize(
    ("source", "text", "translation", "target"),
    [
        ("_Open", "Open", "Öffnen", "_Öffnen"),
        ("E_xit", "Exit", "Beenden", "_Beenden"),
        ("Save &as...", "Save as...", "Speichern unter", "&Speichern unter"),
        ("_Open...", "Open...", "開く...", "開く(_O)..."),
        # A model may have learned marks.
        ("_Open", "Open", "Ö_ffnen", "_Öffnen"),
        ("Open", "Open", "開く(_O)", "開く"),
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
def test_accelerators_and_edges_of_messages(
    source: str, text: str, translation: str, target: str
) -> None:
    assert texts("x.po", message(source)) == [text]
    assert translated("x.po", message(source), [translation]).decode() == message(source, target)


@pytest.mark.parametrize(
    ("name", "encoding", "file", "translation", "after"),
    [
        (
            "x.htm",
            "latin-1",
            PAGE.format("Grün\r\nund blau"),
            "Łódź & é",
            PAGE.format("&#321;ód&#378; &amp; é"),
        ),
        (
            "x.htm",
            "utf-8-sig",
            PAGE.format("Grün\r\nund blau"),
            "Łódź & é",
            PAGE.format("Łódź &amp; é"),
        ),
        (
            "x.xhtml",
            "cp1252",
            '<?xml version="1.0" encoding="windows-1252"?><p>Grün</p>',
            "Rüben",
            '<?xml version="1.0" encoding="windows-1252"?><p>Rüben</p>',
        ),
        (
            "x.html",
            "utf-8",
            '<meta charset="nonsense"><p>Grün</p>',
            "Rüben",
            '<meta charset="nonsense"><p>Rüben</p>',
        ),
        (
            "m.properties",
            "latin-1",
            "# é\na=Door",
            "Tür — 😀",
            "# é\na=Tür \\u2014 \\ud83d\\ude00",
        ),
        (
            "x.po",
            "latin-1",
            message("Grün").replace("UTF-8", "ISO-8859-1").replace("\n", "\r\n"),
            "Rüben",
            message("Grün", "Rüben").replace("UTF-8", "ISO-8859-1").replace("\n", "\r\n"),
        ),
    ],
)
def test_a_translation_is_in_the_encoding_of_the_file(
    name: str, encoding: str, file: str, translation: str, after: str
) -> None:
    assert translated(name, file.encode(encoding), [translation]) == after.encode(encoding)


def test_an_encoding_may_lack_a_character() -> None:
    file = message("a").replace("UTF-8", "ISO-8859-1")
    with pytest.raises(DataError, match="its encoding, iso8859-1, has no '€'; save it as UTF-8"):
        translated("x.po", file, ["€"])


def test_all_targets_may_be_filled() -> None:
    assert changed("x.po", examples.CATALOG, fill_all=True).decode() == replaced(
        examples.CATALOG_IN_CAPITALS,
        ("Sichern", "SAVE"),
        ('msgid "Close"\nmsgstr "Schließen"', '#, fuzzy\nmsgid "Close"\nmsgstr "CLOSE"'),
    )


def test_texts_inside_the_markup_of_another_have_its_line() -> None:
    assert document("x.html", examples.LINKS).lines == [1, 1, 1]

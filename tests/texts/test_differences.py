"""What a translation must keep: placeholders, tags, addresses, numbers."""

import pytest

from nmt.texts.differences import differences, keeps_items


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Delete {name}?", "{name} löschen?"),
        ("{{ user.name }} of ${team}", "{{ user.name }} von ${team}"),
        ("%s has %d files", "%2$d Dateien hat %1$s"),
        ("100% sure, a 5% discount", "100%ig sicher, 5 %iger Nachlass"),
        ("<b>Save</b> it", "<b>Sichern</b>"),
        (
            '<a href="https://a.org" title="Home">x</a>',
            '<a title="Haus" href="https://a.org">y</a>',
        ),
        ("See https://example.org/a.", "Siehe https://example.org/a!"),
        ("write to me@example.org", "an me@example.org schreiben"),
        ("1,250 houses", "1.250 Häuser"),
        ("12 500 houses", "12.500 Häuser"),
        ("on 3/14/2027", "am 14.3.2027"),
        ("3 of 12", "3 von zwölf"),
        ("a UTF-8 text", "ein UTF-8-Text"),
        ("press Ctrl+S, the 5th, 90s, 5ms", "Strg+S, der 5., 90er, 5 ms"),
        ("one of three", "1 von 3"),
        ("%d of %s", "%2$s (%1$d)"),
        ("3.5 km/h and/or 25 %", "25 % und/oder 3,5 km/h"),
        ("Save ~/a/list.txt and C:\\list.txt", "C:\\list.txt und ~/a/list.txt sichern"),
        ("It is e.g. a bus, i.e. big.", "Das ist z.B. ein Bus, d.h. groß."),
        ("a 🚲!", "ein 🚲!"),
        ("at 4:00 p.m., for €5.00", "um 4 Uhr, für 5 €"),
        ("two thousand", "2000"),
        ("at 2:30 p.m.", "um 14.30 Uhr"),
        (f"a {'1' * 5000}", f"{'1' * 5000} b"),
        ("am 14.3.2027", "on March 14, 2027"),
        ("um 16:45 Uhr", "at 4:45 PM"),
        ("um 17 Uhr", "at 5pm"),
        ("120,000 people", "12万人"),
        ("١٢٣٤ بيت", "1234 houses"),
        ("if a < b and c > d", "falls a < b und c > d"),
        ("We bought it at example.com.", "Bei example.com kauften wir es."),
        ("C:\\new [x]", "[y] C:\\new"),
        ("Sna_p to the grid", "Am Ra_ster ausrichten"),
        ("_Walk", "Ge_hen"),
        ("[LIST](list)", "[LISTE](list)"),
        ("{n, plural, one {day} other {days}}", "{n, plural, one {Tag} other {Tage}}"),
    ],
)
def test_kept(source: str, translation: str) -> None:
    assert keeps_items(source, translation)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Delete {name}?", "{Name} löschen?"),
        ("Delete it?", "{name} löschen?"),
        ("Use --all.", "Alles."),
        ("Room 12b, AB7", "Raum 12, AB7"),
        ("Name:", "Name:15 Uhr!"),
        ("in a/b/list.txt", "in list.txt"),
        ('in "/tmp"', "dort"),
        ("Open page 1 of 5.", "Öffne Seite 1 von 15."),
        ("96 x 96 pixels", "96 969696 Pixel"),
        ("in 13 of 2013", "in 2013"),
        ("%d of %s", "%s: %d"),
        ("{:.1f} and {}", "{} und {:.1f}"),
        ("Go to example.com.", "Geh."),
        ("Dear [NAME]", "Lieber Name"),
        ("Dear %NAME%", "Lieber"),
        ("one\\n", "eins"),
        ("max_size", "maximal"),
        ("at 2:30 p.m.", "um 15:30 Uhr"),
        (f"a {'1' * 5000}", f"{'2' * 5000} b"),
        ("on 3/14/2027", "am 15. März 2027"),
        ("{our_name}", "{unser_name}"),
        ("{{ name | upper }}", "{{ name | lower }}"),
        ("{0,number} of %{all}", "{0} von %{all}"),
        ("$t(dog) sleeps", "der Hund schläft"),
        ("${team}", "Mannschaft"),
        ("$price", "Preis"),
        ("{% if new %}new", "neu"),
        ("%s has %d files", "%s hat %s Dateien"),
        ("%(name)s, hello", "Hallo, %(Name)s"),
        ("%1 of %2", "%1 von"),
        ("<b>Save</b>", "<b>Sichern"),
        ("one<br/>two", "eins zwei"),
        ("a &amp; b", "a b"),
        ("See https://example.org/a", "Siehe dort"),
        ("See www.example.org", "Siehe dort"),
        ("me@example.org", "mich"),
        ("@anna likes #berlin", "@anna mag Berlin"),
        ("1,250 houses", "1.520 Häuser"),
        ("at 16:45", "um 16 Uhr"),
        ("3.5 km", "3 km"),
        ("25 dogs", "Hunde"),
        ("a 🚲!", "ein Rad!"),
        ("See example.org", "Siehe dort"),
        ("in /usr/list", "in /usr/Liste"),
        ("C:\\list", "C:\\Liste"),
        ("1,000 houses", "1 Haus"),
        ("0.00 %", "kein Prozent"),
        ("3.14 m", "3 m"),
        ("192.168.0.1", "192.168.0"),
        ("in 1984", "damals"),
    ],
)
def test_changed(source: str, translation: str) -> None:
    assert not keeps_items(source, translation)


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        (
            "Pay 1,250 at {shop}.",
            "Bei {laden} zahlen.",
            [
                ("number", "1,250", 4, "missing"),
                ("placeholder", "{shop}", 13, "missing"),
                ("placeholder", "{laden}", 4, "extra"),
            ],
        ),
        ('<a href="x">a</a>', "a</a>", [("tag", "<a>", 0, "missing")]),
        ("%s of %s", "%s", [("placeholder", "%s", 6, "missing")]),
        # Not once more for the number and the file in it.
        (
            "See https://example.org/2024/a.html",
            "Da",
            [("address", "https://example.org/2024/a.html", 4, "missing")],
        ),
        ('<x id="1"/> and <x id="2"/>', '<x id="1"/>', [("tag", '<x id="2">', 16, "missing")]),
        ("<b>one</b>", "</b>eins<b>", [("tag", "</b>", 0, "misplaced")]),
        ("<b><i>x</i></b>", "<b><i>x</b></i>", [("tag", "</b>", 7, "misplaced")]),
        ("<p>x<br>y<img/></p>", "<p>y<br>x<img/></p>", []),
        ("<b><i>x</b></i>", "<b><i>y</b></i>", []),  # it is no better in the source
    ],
)
def test_differences(
    source: str, translation: str, expected: list[tuple[str, str, int, str]]
) -> None:
    found = differences(source, translation)
    assert [(each.kind, each.text, each.start, each.problem) for each in found] == expected

"""What stands for itself in a text is a border, or belongs to the word before it."""

import pytest

from nmt.texts.translator import TextTranslator
from tests.extras.documents.examples import STRING
from tests.extras.documents.rewriting import document
from tests.extras.documents.test_docx import archive, body, paragraph, run
from tests.texts.fakes import FakeTranslator

RAISED = '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
LOWERED = RAISED.replace("super", "sub")
XLIFF = (
    '<xliff version="1.2"><file><body><trans-unit id="a"><source>{}</source>'
    "</trans-unit></body></file></xliff>"
)


def read(name: str, file: str | bytes) -> tuple[list[str], bytes]:
    """The sentences that a model reads, and the file with them as their translations."""
    fake = FakeTranslator(lambda text: [text])
    found = document(name, file)
    results = TextTranslator(fake).translate_marked([each.text for each in found.segments])
    return fake.read, b"".join(found.written(best[0].marked for best in results))


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        # Breaks, unless a lower-case letter goes on with the line.
        ("x.html", "<p>The dog<br>The tree<br>is here</p>", ["The dog", "The tree is here"]),
        ("x.html", "<p>one dog<br><br/>two trees</p>", ["one dog", "two trees"]),
        ("x.html", "<p><b>The dog<br>Mary</b> sees</p>", ["The dog", "Mary sees"]),
        ("x.html", "<p>Dog<b><br></b>The tree</p>", ["Dog", "The tree"]),
        ("x.html", "<p>Name:<br/>- The tree</p>", ["Name", "The tree"]),
        ("x.html", "<p>Trees<img>Dogs</p>", ["Trees Dogs"]),
        ("x.md", "The dog  \nThe tree\\\nA dog\nsees", ["The dog", "The tree", "A dog sees"]),
        ("x.md", "| A |\n|-|\n| Dog<br>Tree |", ["A", "Dog", "Tree"]),
        ("x.json", '{"a": "<p>The dog</p><p>A tree</p>"}', ["The dog", "A tree"]),
        ("x.json", '{"a": "<ul><li>dog</li><li>tree</li></ul>"}', ["dog", "tree"]),
        ("s.xml", STRING.format("<![CDATA[<p>Dog</p><p>tree</p>]]>"), ["Dog", "tree"]),
        ("s.xml", STRING.format("The dog<br/>The tree"), ["The dog", "The tree"]),
        ("x.txt", "<p>The dog</p><p>A tree<br>Is it?</p>", ["The dog", "A tree", "Is it?"]),
        # The numbers of notes belong to no word, but to formulas.
        ("x.html", "<p>Dog<sup>1</sup> sees.<sup>2</sup> Is it?</p>", ["Dog sees.", "Is it?"]),
        ("x.html", "<p>The <i>dog</i><sup><a href='#n'>[1]</a></sup> is</p>", ["The dog is"]),
        ("x.html", '<p>A dog<a href="#n">1</a> is 5 m<sup>2</sup></p>', ["A dog is Tom"]),
        ("x.html", "<p>H<sub>2</sub>SO<sub>4</sub> is 10<sup>6</sup></p>", ["Tom is Boston"]),
        ("x.html", "<p>See page <a href='#p'>5</a></p>", ["See page 5"]),
        ("x.md", "The dog[^1] is.[^2] A tree", ["The dog is.", "A tree"]),
        ("x.md", "The dog[1](#n), CO<sub>2</sub>", ["The dog, Tom"]),
        ("x.txt", "The dog[1][2] is.[3] A tree[4, 5]", ["The dog is.", "A tree"]),
        ("x.txt", "The dog¹ is 50 m², 10⁶ H₂O", ["The dog is Tom, Boston Mary"]),
        ("x.txt", "Press [1] or list[0]", ["Press Tom or Boston"]),
        # Elements that stay, with a sign between, are one.
        ("x.html", "<p>A <kbd>Ctrl</kbd>+<kbd>S</kbd> is</p>", ["A Tom is"]),
        ("x.html", "<p>A <kbd>Ctrl</kbd> + <kbd>S</kbd> is</p>", ["A Tom is"]),
        ("x.html", "<p>A <kbd>File</kbd> → <kbd>Save</kbd> is</p>", ["A Tom is"]),
        ("x.html", "<p>A <kbd>File</kbd> &gt; <kbd>Save</kbd> is</p>", ["A Tom is"]),
        ("x.html", "<p>A <b><kbd>Alt</kbd></b>-<b><kbd>F4</kbd></b> is</p>", ["A Tom is"]),
        ("x.html", "<p>A <code>a</code>/<code>b</code>, <code>c</code></p>", ["A Tom, Boston"]),
        ("x.md", "A `Ctrl`+`S` is", ["A Tom is"]),
        ("x.txt", "A <kbd>Ctrl</kbd>+<kbd>S</kbd> is", ["A Tom is"]),
        # The readings over characters stay.
        ("x.html", "<p>A <ruby>dog<rp>(</rp><rt>inu</rt><rp>)</rp></ruby> is</p>", ["A dog is"]),
        ("x.html", "<p>A <ruby>dog<rt>inu</ruby> is</p>", ["A dog is"]),
        ("x.md", "A <ruby>dog<rp>(</rp><rt>inu</rt><rp>)</rp></ruby> is", ["A dog is"]),
        ("x.txt", "A <ruby>dog<rt>inu</rt></ruby> is", ["A dog is"]),
        ("s.xml", STRING.format("A <ruby>dog<rt>inu</rt></ruby> is"), ["A dog is"]),
        # Lines of shortcodes, and shortcodes around a text.
        ("x.md", "{{< note >}}\nThe dog\n{{< /note >}}", ["The dog"]),
        ("x.md", "{{<note>}}\nThe dog\n{{</note>}}", ["The dog"]),
        ("x.md", '{{< figure\n  src="*a*" >}}\nThe dog', ["The dog"]),
        ("x.md", "{{% note %}}The dog is here.{{% /note %}}", ["The dog is here."]),
        ("x.md", "{% include a.html %}\nThe dog\n{% endraw %}", ["The dog"]),
        ("x.md", "{{ youtube(1) }}\nThe dog\n:::", ["The dog"]),
        ("x.md", "The dog\n<Tabs>\nThe tree", ["The dog", "The tree"]),
        ("x.md", "Dog\n: A tree\n\n*[DOG]: A cat", ["Dog", "A tree", "A cat"]),
        ("x.md", "export const x = 1\nThe dog {/* a */} is", ["The dog is"]),
        ("x.md", "The [[big dog]] is", ["The Tom is"]),
        ("x.md", "The dog is\n{{ name }}\nhere", ["The dog is Tom here"]),
        # Dots at the start of a sentence.
        ("x.txt", "...and the dog.\n… And?\n... ... is it", ["and the dog.", "And?", "is it"]),
        ("x.txt", "1. ...the dog. ...and a tree...", ["the dog.", "and a tree..."]),
        ("x.txt", "...\n..\n./dog sees ../tree", ["Tom sees Boston"]),
    ],
)  # fmt: skip
def test_sentences(name: str, file: str, expected: list[str]) -> None:
    sentences, written = read(name, file)
    assert sentences == expected
    assert written.decode() == file


def test_a_break_in_xliff() -> None:
    sentences, written = read("x.xlf", XLIFF.format('The dog<x id="1" ctype="lb"/>The tree'))
    assert sentences == ["The dog", "The tree"]
    assert b'>The dog<x id="1" ctype="lb"/>The tree</target>' in written.replace(b"/> ", b"/>")


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([run("The dog"), "<w:r><w:br/></w:r>", run("The tree")], ["The dog", "The tree"]),
        (["<w:r><w:t>Dog</w:t><w:cr/><w:t>Tree</w:t></w:r>"], ["Dog", "Tree"]),
        (["<w:r><w:t>Dog</w:t><w:tab/><w:t>Tree</w:t></w:r>"], ["Dog", "Tree"]),
        ([run("1."), "<w:r><w:tab/></w:r>", run("The dog")], ["1.", "The dog"]),
        (["<w:r><w:footnoteRef/></w:r>", run(" The dog")], ["The dog"]),
        (["<w:r><w:sym/></w:r>", run(" The dog")], ["The dog"]),
        ([run("The "), "<w:dir>", run("dog"), "</w:dir>"], ["The dog"]),
        ([run("The "), "<w:r><w:ruby/></w:r>", run(" is")], ["The Tom is"]),
        ([run("A dog"), run("1", RAISED), run(" is 5 m"), run("2", RAISED)], ["A dog is Tom"]),
        ([run("A dog."), '<w:r><w:footnoteReference w:id="1"/></w:r>', run(" A")], ["A dog.", "A"]),
        ([run("H"), run("2", LOWERED), run("O is 10"), run("6", RAISED)], ["Tom is Boston"]),
    ],
)
def test_sentences_of_word(runs: list[str], expected: list[str]) -> None:
    given = archive(paragraph(*runs))
    sentences, written = read("x.docx", given)
    assert sentences == expected
    assert body(written) == body(given)

"""Messages in JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from tests.extras.documents.catalogs import document, into, texts, translated

MESSAGES = r"""{
  "title": "Hello \"world\"",
  "nested": {"list": ["One", "btn-primary", "Two words", {"b": "Sign in"}], "locale": "en_US"},
  "color": "#ffcc00", "url": "https://example.org", "file": "img/a.png", "date": "DD.MM.YYYY",
  "number": 12, "none": null, "time": "HH:mm", "state": "isOpen", "mail": "tom@example.org",
  "sides": "one car | {n} cars", "numbers": "{0} none|{1} one|]1,Inf] many cars",
  "html": "Read <a href=\"\/x\">this<\/a> {a|b}",
  "@title": {"description": "Stay please"},
  "twice": "First", "twice": "Second", "": "Empty key"
}
"""


def test_values() -> None:
    assert texts("en.json", MESSAGES) == [
        'Hello "world"',
        "One",
        "Two words",
        "Sign in",
        "one car \n\n {n} cars",
        "{0} none\n\n{1} one\n\n]1,Inf] many cars",
        'Read <a href="/x">this</a> {a|b}',
        "First",
        "Second",
        "Empty key",
    ]
    assert translated("en.json", MESSAGES, str) == MESSAGES


def test_only_values_change() -> None:
    result = translated("en.json", MESSAGES)
    assert '"title": "HELLO \\"WORLD\\""' in result
    assert '"ONE CAR | {N} CARS"' in result
    assert '"{0} NONE|{1} ONE|]1,Inf] MANY CARS"' in result.replace("INF", "Inf")
    assert r'"READ <A HREF=\"\/X\">THIS<\/A> {A|B}"' in result
    before, after = json.loads(MESSAGES), json.loads(result)
    assert before.keys() == after.keys()
    for key in ("color", "url", "file", "date", "number", "none", "time", "state", "@title"):
        assert after[key] == before[key]
    assert result.lower() == MESSAGES.lower()


def test_forms_stay_with_a_remark() -> None:
    found = document("en.json", '{"a": [1,\n{"files": "{n, plural, one {a} other {b}}"}]}')
    assert found.segments == []
    assert found.remarks == [
        "line 2: a.files has plural or select forms in braces; translate it by hand"
    ]


def test_characters_are_written_as_the_file_does() -> None:
    assert into("Tür")("en.json", '{"a": "Door"}') == '{"a": "Tür"}'
    assert (
        into("Tür")("en.json", r'{"a": "Door", "\u00e4": 1}') == r'{"a": "T\u00fcr", "\u00e4": 1}'
    )


def test_only_messages_of_extensions_are_texts() -> None:
    text = '{"a": {"message": "Open", "description": "A button"}, "b": {"message": "Close"}}'
    assert texts("messages.json", text) == ["Open", "Close"]


def test_values_have_no_accelerators() -> None:
    assert texts("package.json", '{"a": "_site and &more"}') == ["_site and &more"]
    assert into("&& _x")("en.json", '{"a": "_Site && more"}') == '{"a": "&& _x"}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": "b",}', "line 1: is no JSON"),
        ('{\n// comment\n"a": "b"}', "line 2: is no JSON"),
        ("[" * 100_000, "line 1: is nested too deeply"),
        ("", "line 1: is no JSON"),
    ],
)
def test_errors(text: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        document("en.json", text)


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text('ab "\\/|{}\n@ä😀', max_size=10)),
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(st.text('ab@"', max_size=3), children)
    ),
    max_leaves=10,
)


@given(value=VALUES, indent=st.sampled_from([None, 2]), is_ascii=st.booleans())
def test_any_nesting(value: Any, indent: int | None, is_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    assert translated("en.json", text, str) == text

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shape(each) for key, each in value.items()}
        if isinstance(value, list):
            return [*map(shape, value)]
        return value.upper() if isinstance(value, str) else value

    assert shape(json.loads(translated("en.json", text))) == shape(value)

"""The clients of DeepL: texts, languages, use; what is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from fastapi.testclient import TestClient

from nmt.extras.serve import deepl
from nmt.extras.serve.answers import ServedRun
from tests.extras.serve.conftest import DOG, KING, TOKEN, Gate, client_of, error_of

KEY = {"authorization": f"DeepL-Auth-Key {TOKEN}"}
NO_TOKEN = "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`, or as auth_key"
NO_ADDRESS = "there is no such address; this server only translates"
NO_PAIR = "source, target: no run translates auto-FR; there is en-de"

message_of = partial(error_of, key="message")


@pytest.fixture
def client(served: list[ServedRun]) -> Iterator[TestClient]:
    with client_of(served, token=TOKEN, characters=2000) as client:
        yield client


def texts_of(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["text"] for each in answer.json()["translations"]]


@pytest.fixture(scope="module")
def dog(served: list[ServedRun]) -> str:
    return served[0].texts.sentence_translator.translate([DOG])[0].text


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"text": [DOG], "target_lang": "DE"}},
        {"json": {"text": DOG, "target_lang": "de-DE", "source_lang": "EN", "new_field": [1]}},
        {"json": {"text": [DOG], "target_lang": "DE", "source_lang": None, "formality": ""}},
        {"data": {"text": DOG, "target_lang": "de", "formality": "prefer_less"}},
        {"params": {"text": DOG, "source_lang": "", "target_lang": "de", "split_sentences": "1"}},
        {"json": {"text": [DOG]}, "params": {"target_lang": "DE"}},
    ],
)
def test_a_text(client: TestClient, dog: str, sent: dict[str, Any]) -> None:
    answer = client.post("/v2/translate", headers=KEY, **sent)
    expected = [{"detected_source_language": "EN", "text": dog}]
    assert (answer.status_code, answer.json()) == (200, {"translations": expected})


def test_texts_in_order_and_their_characters(client: TestClient, dog: str) -> None:
    fields = {"text": [DOG, "", "1", f"{DOG}\n\n{DOG}"], "target_lang": "DE"}
    more = {"show_billed_characters": "1", "auth_key": TOKEN}
    rows = client.post("/v2/translate", data=fields | more).json()["translations"]
    assert [row["text"] for row in rows] == [dog, "", "1", f"{dog}\n\n{dog}"]
    assert [row["billed_characters"] for row in rows] == [*map(len, fields["text"])]
    count = client.get("/v2/usage", headers=KEY).json()
    assert count == {"character_count": sum(map(len, fields["text"])), "character_limit": 10**12}


@pytest.mark.parametrize(
    ("text", "handling", "more"),
    [
        (f"<span>{DOG}</span>", "html", {}),
        (f'<li><span style="margin: 0in">{DOG}</span></li>', "html", {}),
        (f"<p>{DOG}</p> <p>{DOG}</p>", "xml", {}),
        (f"<a><no>{DOG}</no><p>{DOG}</p></a>", "xml", {"ignore_tags": "x,no"}),
        (f"<a>{DOG}<cut>{DOG}</cut>{DOG}</a>", "xml", {"splitting_tags": ["cut"]}),
        (f"{DOG}\n<\n{DOG}", "xml", {}),  # is none
    ],
)
def test_markup(
    client: TestClient, dog: str, text: str, handling: str, more: dict[str, Any]
) -> None:
    """LibreOffice has its format in the address, and its token in the form."""
    fields = {"auth_key": TOKEN, "target_lang": "DE", "text": text, **more}
    answer = client.post(f"/v2/translate?tag_handling={handling}", data=fields)
    kept = text.replace(f"<no>{DOG}", "<no>").replace(DOG, dog).replace("<no>", f"<no>{DOG}")
    assert texts_of(answer) == [kept if "<no>" in text else text.replace(DOG, dog)]


def test_tags_of_xml_stay_in_their_sentence(client: TestClient) -> None:
    fields = {"text": 'The <x id="1">dog</x> sees the tree.', "tag_handling": "xml"}
    (text,) = texts_of(
        client.post("/v2/translate", json=fields | {"target_lang": "DE"}, headers=KEY)
    )
    assert text.count('<x id="1">') == text.count("</x>") == 1
    assert text.endswith(".")


def test_languages(client: TestClient) -> None:
    source = [{"language": "EN", "name": "English"}]
    target = [{"language": "DE", "name": "German", "supports_formality": False}]
    ask = client.request
    assert ask("GET", "/v2/languages", headers=KEY).json() == source
    assert ask("GET", "/v2/languages?type=target", headers=KEY).json() == target
    assert ask("GET", "/v2/languages", data={"type": "target"}, headers=KEY).json() == target
    assert ask("POST", "/v2/languages", data={"type": "target"}, headers=KEY).json() == target


def refused(status: int, text: str, path: str = "/v2/translate", /, **fields: Any) -> Any:
    return {"url": path, "json": {"text": DOG, "target_lang": "DE", **fields}}, status, text


def sent(body: bytes, status: int, text: str) -> Any:
    headers = {**KEY, "content-type": "application/json"}
    return {"url": "/v2/translate", "content": body, "headers": headers}, status, text


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        refused(400, "text: Field required", text=None),
        refused(400, "text: Field required", text=[]),
        refused(400, "text: Input should be a valid string", text=[None]),
        sent(b'{"text": "\\ud800"}', 400, "text: Value error, 'utf-8' codec can't"),
        refused(400, "text: List should have at most 50 items", text=["a"] * 51),
        refused(400, "target_lang: Field required", target_lang=""),
        refused(400, NO_PAIR, target_lang="FR"),
        refused(400, "tag_handling: Input should be '', 'html' or 'xml'", tag_handling="rtf"),
        refused(400, "formality: this model has no formality; send default", formality="less"),
        refused(400, "formality: Input should be 'default'", formality="rude"),
        refused(400, "custom_instructions, style_id: the model", custom_instructions=["a"]),
        refused(400, "custom_instructions, style_id: the model", style_id="a"),
        refused(413, "2,001 characters; a request has at most 2,000; split it", text="a" * 2001),
        refused(413, "129 lines; a request has at most 128; split it", text="\n" * 128),
        refused(
            400,
            "line 1: XML with a DOCTYPE, which may define entities; leave it out",
            text='<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
            tag_handling="xml",
        ),
        refused(404, NO_ADDRESS, "/v2/write/rephrase"),
        refused(404, NO_ADDRESS, "/v3/languages"),
        refused(405, "this server only translates; to change a glossary, delete", "/v2/usage"),
        *(
            sent(body, 400, "the body must be a JSON object, or a form")
            for body in (b"[", b"[]", b"7", b"null", b"[" * 9000, b"\xff")
        ),
        sent(b" " * 2_000_000, 413, "the request is larger than"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_refused(client: TestClient, request_: Any, status: int, text: str) -> None:
    found, message = message_of(client.post(**{"headers": KEY, **request_}))
    assert (found, message[: len(text)]) == (status, text)


def test_xml_that_is_nested_too_deeply(served: list[ServedRun]) -> None:
    text = "<a>" * 1100 + "x" + "</a>" * 1100
    with client_of(served) as client:
        fields = {"text": text, "target_lang": "DE", "tag_handling": "xml"}
        answer = message_of(client.post("/v2/translate", json=fields))
        assert answer == (400, "line 1: is nested too deeply")


def test_a_token_and_other_sites(client: TestClient) -> None:
    def ask(key: str, **headers: str) -> tuple[int, str]:
        data = {"text": DOG, "target_lang": "DE", "auth_key": key}
        return message_of(client.post("/v2/translate", data=data, headers=headers))

    assert ask("") == ask("wrong") == (403, NO_TOKEN)
    assert ask(TOKEN, authorization="DeepL-Auth-Key wrong") == (403, NO_TOKEN)
    other = "the request comes from a page of "
    page = "http://example.org"
    assert ask(TOKEN, origin=page) == (403, f"{other}{page}, not of this server")
    assert ask(TOKEN, **{"sec-fetch-site": "same-site"}) == (403, f"{other}another site")


@pytest.mark.parametrize("fields", [{"target_lang": "FR"}, {"auth_key": "x"}, {"text": "a" * 2001}])
def test_libreoffice_gets_its_text_back(client: TestClient, fields: dict[str, str]) -> None:
    """It would empty the paragraph."""
    data = {"auth_key": TOKEN, "target_lang": "DE", "text": DOG, **fields}
    office = {"user-agent": "LibreOffice 25.2.3.2"}
    assert texts_of(client.post("/v2/translate", data=data, headers=office)) == [data["text"]]
    assert message_of(client.post("/v2/translate", data=data))[0] in (400, 403, 413)
    empty = client.post("/v2/translate", data={"auth_key": TOKEN}, headers=office)
    assert message_of(empty) == (400, "text: Field required")


def test_libreoffice_gets_its_text_back_before_it_gives_up(
    served: list[ServedRun], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl, "OFFICE_SECONDS", 0.1)
    fields = {"auth_key": "none", "target_lang": "DE", "text": DOG}
    with client_of(served) as client:
        office = {"user-agent": "LibreOffice 25.2.3.2"}
        assert texts_of(client.post("/v2/translate", data=fields, headers=office)) == [DOG]
        gate.event.set()


def test_clients_at_once_get_what_each_gets_alone(client: TestClient, dog: str) -> None:
    """Several kinds of requests, which the queue puts together."""
    page = f"<p>{KING}</p>"
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v2/translate", {"json": {"text": [DOG, KING], "target_lang": "DE"}}),
        ("POST", "/v2/translate?tag_handling=html", {"data": {"text": page, "target_lang": "DE"}}),
        ("POST", "/v2/translate?tag_handling=xml", {"json": {"text": page, "target_lang": "DE"}}),
        ("POST", "/translate", {"json": {"q": KING, "source": "auto", "target": "de"}}),
        ("GET", "/translate", {"params": {"q": DOG, "langpair": "en|de"}}),
        ("POST", "/translate", {"json": {"q": DOG, "glossary": {"dog": "Katze"}}}),
        ("POST", "/translate", {"json": {"q": DOG, "glossary": {"dog": "Vogel"}}}),
        ("POST", "/translate", {"json": {"q": DOG, "glossary": {"tree": "Haus"}}}),
    ]

    def ask(number: int) -> Any:
        method, path, fields = requests[number % len(requests)]
        return client.request(method, path, headers=KEY, **fields).json()

    alone = [*map(ask, range(len(requests)))]
    assert alone[0]["translations"][0]["text"] == dog
    assert len({answer["translatedText"] for answer in alone[4:]}) == 4
    with ThreadPoolExecutor(20) as pool:
        assert [*pool.map(ask, range(200))] == alone * 25

"""The API as LibreTranslate's clients use it: forms, languages, detection."""

import asyncio
import base64
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from fastapi.testclient import TestClient
from hypothesis import assume, example, given
from hypothesis import strategies as st
from starlette.requests import Request

from nmt.decoding.translator import Translator
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.guard import form_fields
from nmt.texts.translator import TextTranslator
from tests.extras.serve.conftest import DOG, KING, TOKEN, client_of

HUND = "Der Hund sieht den Baum."
FIELDS = {"q": DOG, "source": "en", "target": "de", "format": "text", "api_key": ""}


def multipart(**parts: str | tuple[str, bytes]) -> dict[str, Any]:
    """The body of a form, and its type. A file has a name and a content."""
    body = b""
    for name, value in parts.items():
        file, content = ("", value.encode()) if isinstance(value, str) else value
        of_file = f'; filename="{file}"\r\nContent-Type: application/octet-stream' if file else ""
        head = f'--=x\r\nContent-Disposition: form-data; name="{name}"{of_file}\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return {
        "content": body + b"--=x--\r\n",
        "headers": {"content-type": 'multipart/form-data; boundary="=x"'},
    }


def test_all_its_fields_as_json_or_as_a_form(client: TestClient) -> None:
    expected = client.post("/translate", json={"q": DOG, "alternatives": 1}).json()
    for fields in (FIELDS, {**FIELDS, "format": "", "api_key": None, "source": None}):
        answer = client.post("/translate", json={**fields, "alternatives": 1}).json()
        assert answer == expected
    detected = {**expected, "detectedLanguage": {"confidence": 100, "language": "en"}}
    auto = {**FIELDS, "alternatives": "1", "source": "auto"}
    assert client.post("/translate", json=auto).json() == detected
    assert client.post("/translate", data=auto).json() == detected
    assert client.post("/translate", **multipart(**auto)).json() == detected
    assert client.post("/translate", params=auto).json() == detected


def test_texts_of_a_form_are_a_list(client: TestClient) -> None:
    expected = client.post("/translate", json={"q": [DOG, KING]}).json()
    assert client.post("/translate", data={"q": [DOG, KING]}).json() == expected
    several = client.post("/translate", data={**FIELDS, "q": [DOG, KING], "source": "auto"}).json()
    assert several["detectedLanguage"] == [{"confidence": 100, "language": "en"}] * 2


def test_lines_of_a_form_end_as_in_forms(client: TestClient) -> None:
    expected = client.post("/translate", json={"q": f"{DOG}\n{KING}"}).json()
    assert client.post("/translate", data={"q": f"{DOG}\r\n{KING}"}).json() == expected


@given(content=st.binary(), text=st.text(st.characters(exclude_categories=["Cs"])))
@example(content=bytes(range(256)) + b"\r\n--=\r\n\r\n--=\r--=\n--\r\n", text="\r\n")
def test_a_file_stays_as_it_is(content: bytes, text: str) -> None:
    assume(b"--=x" not in content + text.encode())
    form = multipart(file=("Grüße; a.docx", content), source=text)
    headers = [(b"content-type", form["headers"]["content-type"].encode())]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": form["content"]}

    request = Request({"type": "http", "query_string": b"", "headers": headers}, receive)
    fields = asyncio.run(form_fields(request, len(form["content"])))
    assert base64.b64decode(fields.pop("file")) == content
    assert fields == {"name": "Grüße; a.docx", "source": text}


def test_the_python_client_with_a_token(served: list[ServedRun]) -> None:
    """libretranslatepy sends forms, also to ask for the languages."""
    with client_of(served, token=TOKEN) as client:

        def ask(method: str, path: str, **fields: str) -> Any:
            return client.request(method, path, data={**fields, "api_key": TOKEN}).json()

        languages = [
            {"code": "en", "name": "English", "targets": ["de"]},
            {"code": "de", "name": "German", "targets": []},
        ]
        assert ask("GET", "/languages") == languages
        assert ask("POST", "/detect", q=HUND)[0] == {"confidence": 100, "language": "de"}
        expected = served[0].translator.translate([DOG])[0].text
        answer = ask("POST", "/translate", q=DOG, source="en", target="de")
        assert answer["translatedText"] == expected


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        (DOG, ["en"]),
        (HUND, ["de"]),
        ([DOG, KING], ["en"]),
        (DOG.upper(), ["en"]),
        (f'<a href="x.html">{HUND}</a> https://example.org/the/dog {{the}} 1,250', ["de"]),
        ("Собака спит.", []),
        ("", []),
        ("1", []),
    ],
)
def test_detection(client: TestClient, text: str, languages: list[str]) -> None:
    found = client.post("/detect", json={"q": text}).json()
    assert [each["language"] for each in found if each["confidence"] >= 50] == languages
    assert found  # clients take the first


def test_the_detected_language_chooses_the_run(served: list[ServedRun]) -> None:
    first, second = served
    back = first.info.model_copy(update={"name": "back", "source": "de", "target": "en"})
    translator = second.translator
    reverse = Translator(
        translator.model,
        tokenizers=translator.tokenizers[::-1],
        vocabularies=translator.vocabularies[::-1],
        options=translator.options,
    )
    runs = [first, ServedRun(back, TextTranslator(reverse))]
    with client_of(runs) as client:
        for text, name in ((DOG, "run"), (HUND, "back")):
            assert (
                client.post("/translate", json={"q": text, "source": "auto"}).json()["run"] == name
            )
            assert client.post("/translate", json={"q": text}).json()["run"] == "run"


def test_the_settings_of_its_page(client: TestClient) -> None:
    settings = client.get("/frontend/settings").json()
    assert (settings["charLimit"], settings["keyRequired"]) == (200, False)
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert ".srt" in settings["supportedFilesFormat"]

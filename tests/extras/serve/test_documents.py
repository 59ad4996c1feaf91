"""Files and HTML: their parts, limits, downloads; terms of a request; and the clients of
LibreTranslate.
"""

import asyncio
import base64
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from hypothesis import assume, example, given
from hypothesis import strategies as st
from starlette.requests import Request

from nmt.decoding.translator import Translator
from nmt.extras.serve import app as server
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.app import translated_name
from nmt.extras.serve.guard import form_fields
from nmt.extras.serve.schemas import TranslateAnswer
from nmt.texts.translator import TextTranslator
from tests.extras.serve.conftest import DOG, KING, TOKEN, Gate, client_of, error_of, until


def upload(client: TestClient, name: str, content: str | bytes, **fields: str) -> Any:
    """The answer to a file, and the translated file."""
    response = client.post("/translate_file", data=fields, files={"file": (name, content)})
    assert response.status_code == 200, response.text
    answer = response.json()
    return answer, client.get(answer["translatedFileUrl"])


def translations(client: TestClient, *texts: str) -> list[str]:
    answer: list[str] = client.post("/translate", json={"q": texts}).json()["translatedText"]
    return answer


def test_a_file_with_more_texts_than_fit_into_the_queue(served: list[ServedRun]) -> None:
    with client_of(served, queue=10) as client:
        dog, king = translations(client, DOG, KING)
        answer, file = upload(client, "Grüße 1.txt", f"{DOG}\r\n\r\n  {KING}\r\n" * 20, target="de")
        assert file.content.decode() == f"{dog}\r\n\r\n  {king}\r\n" * 20
        assert file.headers["content-disposition"] == (
            "attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe%201.de.txt"
        )
        assert file.headers["content-type"] == "application/octet-stream"
        assert (answer["run"], answer["warnings"]) == ("run", [])
        assert re.fullmatch(
            r"http://127\.0\.0\.1:8000/download_file/[\w-]{32}", answer["translatedFileUrl"]
        )


def test_requests_of_others_come_between_the_parts_of_a_file(
    client: TestClient, gate: Gate
) -> None:
    with ThreadPoolExecutor(2) as pool:
        document = pool.submit(upload, client, "a.txt", f"{DOG}\n" * 100)
        until(lambda: gate.started)
        other = pool.submit(client.post, "/translate", json={"q": KING, "prefix": "Der"})
        until(lambda: client.get("/health").json()["waiting"])
        gate.event.set()
        document.result()
        other.result()
    prefixes = [task.prefix for task in gate.started]
    assert sorted(prefixes) == ["", "", "", "", "Der"]
    assert prefixes[-1] == ""


def test_a_defect_is_an_error_in_json(
    served: list[ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.extras.serve.app.translated_name", lambda *_: 1 / 0)
    app = client_of(served).app
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        response = client.post("/translate_file", files={"file": ("a.txt", DOG)})
        text = "an error inside the server; its log has the details"
        assert error_of(response) == (500, text)


def test_warnings_of_a_file_name_its_lines(client: TestClient) -> None:
    answer, _ = upload(client, "a.txt", f"{DOG}\n\nqqq zzz xxx\n")
    assert [text.partition(":")[0] for text in answer["warnings"]] == ["line 3"]


def test_documents_say_their_language(client: TestClient) -> None:
    page = f'<html lang="en"><p>{DOG}</p></html>'
    answer = client.post("/translate", json={"q": page, "format": "html"}).json()
    assert answer["translatedText"].startswith('<html lang="de"><p>')
    catalog = f'msgid ""\nmsgstr "Language: {{}}\\n"\n\nmsgid "{DOG}"\nmsgstr ""\n'
    assert '"Language: de\\n"' in upload(client, "a.po", catalog.format(""))[1].text
    answer, file = upload(client, "a.po", catalog.format("fr"))
    assert '"Language: fr\\n"' in file.text
    assert answer["warnings"][-1].startswith("line 2: names the language fr, but the run")


def test_a_download_needs_its_key_and_ends(
    served: list[ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "KEPT_SECONDS", 0.3)
    gone = "no such file; translated files are deleted after 10 minutes"
    with client_of(served, token=TOKEN) as client:
        assert client.post("/translate_file", files={"file": ("a.txt", DOG)}).status_code == 401
        answer, file = upload(client, "a.txt", DOG, api_key=TOKEN)
        assert file.status_code == 200
        assert error_of(client.get("/download_file/x")) == (404, gone)
        until(lambda: client.get(answer["translatedFileUrl"]).status_code == 404)


def test_the_oldest_download_makes_room(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_KEPT_BYTES", 60)
    urls = [upload(client, "a.txt", DOG)[0]["translatedFileUrl"] for _ in range(3)]
    assert [client.get(url).status_code for url in urls] == [404, 200, 200]


@pytest.mark.parametrize(
    ("name", "translated"),
    [("a/README.md", "README.de.md"), ("C:\\a\\b.c.docx", "b.c.de.docx"), ("../.txt", ".txt.de")],
)
def test_names_of_translated_files(name: str, translated: str) -> None:
    assert translated_name(name, "de") == translated


def test_html(client: TestClient) -> None:
    dog, king = translations(client, DOG, KING)
    fields = {"format": "html", "alternatives": 3}
    html = f'<p class="a &amp; b">{DOG}</p>\r\n<ul><li>{KING}</li></ul><script>{DOG}</script>'
    answer = client.post("/translate", json={"q": [html, DOG, ""], **fields}).json()
    translated = html.replace(f">{DOG}</p>", f">{dog}</p>").replace(KING, king)
    assert answer["translatedText"] == [translated, dog, ""]
    assert [len(others) for others in answer["alternatives"]] == [3, 3, 0]
    single = client.post("/translate", data={"q": html, **fields, "details": "true"}).json()
    assert (single["translatedText"], single["alternatives"]) == (
        translated,
        answer["alternatives"][0],
    )
    (dogs, kings) = ([each["text"] for each in line["translations"]] for line in single["lines"])
    assert single["alternatives"] == [
        html.replace(f">{DOG}</p>", f">{dog}</p>").replace(KING, king)
        for dog, king in zip(dogs[1:], kings[1:], strict=True)
    ]
    assert [line["translations"][0]["text"] for line in single["lines"]] == [dog, king]
    TranslateAnswer.model_validate(single)
    # what a page says about its encoding does not concern this text
    html = f'<meta charset="latin-1"><p class="Ж">{DOG}</p>'
    answer = client.post("/translate", json={"q": html, "format": "html"}).json()
    assert answer["translatedText"] == html.replace(DOG, dog)


def test_inline_tags_of_html_stay(client: TestClient) -> None:
    html = "<p>The <b>dog</b> sees the tree.</p>"
    text = client.post("/translate", json={"q": html, "format": "html"}).json()["translatedText"]
    assert "<b>" in text
    assert re.sub("</?b>", "", text) == f"<p>{translations(client, DOG)[0]}</p>"


def test_terms_of_files_and_html(client: TestClient) -> None:
    glossary = {"dog": "Katze"}
    _, file = upload(client, "a.txt", DOG, glossary=json.dumps(glossary))
    assert "Katze" in file.text
    fields = {"q": f"<p>{DOG}</p>", "format": "html", "glossary": glossary}
    assert "Katze" in client.post("/translate", json=fields).json()["translatedText"]


def test_details_of_each_sentence(client: TestClient) -> None:
    fields = {"q": f"{DOG} {KING}\n{DOG}", "details": True, "alternatives": 2}
    answer = client.post("/translate", json=fields).json()
    TranslateAnswer.model_validate(answer)
    line, single = answer["lines"]
    assert "sentences" not in single
    assert [each["source"] for each in line["sentences"]] == [DOG, KING]
    dog, king = (each["translations"] for each in line["sentences"])
    assert dog == single["translations"]
    assert len(king) == 3
    assert line["translations"][0]["text"] == f"{dog[0]['text']} {king[0]['text']}"


def test_a_very_long_line_has_attention_in_its_sentences(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"q": f"{DOG} {KING}", "details": True, "alternatives": 1}
    (expected,) = client.post("/translate", json=fields).json()["lines"]
    monkeypatch.setattr("nmt.extras.serve.answers.MAX_WEIGHTS", 100)
    answer = client.post("/translate", json=fields).json()
    TranslateAnswer.model_validate(answer)
    (line,) = answer["lines"]
    assert line["sentences"] == expected["sentences"]
    for translation, whole in zip(line["translations"], expected["translations"], strict=True):
        assert translation == {**whole, "attention": None}


def test_a_line_that_is_too_long(client: TestClient) -> None:
    text = "5,001 characters in a line; it has at most 5,000; split it"
    assert error_of(client.post("/translate", json={"q": f"{DOG}\n{'a' * 5001}"})) == (413, text)


def test_a_long_text_counts_as_several(served: list[ServedRun], gate: Gate) -> None:
    with client_of(served, queue=3) as client, ThreadPoolExecutor(2) as pool:
        first = pool.submit(translations, client, "a" * 1000)  # no more than fit into the queue
        until(lambda: gate.started)
        second = pool.submit(translations, client, "a" * 300)
        until(lambda: client.get("/health").json()["waiting"] == 2)
        assert client.post("/translate", json={"q": "a" * 300}).status_code == 503
        gate.event.set()
        first.result()
        second.result()


# As the clients of LibreTranslate use it: forms, languages, detection

HUND = "Der Hund sieht den Baum."
FIELDS = {"q": DOG, "source": "en", "target": "de", "format": "text", "api_key": ""}


def multipart(charset: str = "", **parts: str | tuple[str, bytes]) -> dict[str, Any]:
    """The body of a form, and its type. A file has a name and a content."""
    body = b""
    for name, value in parts.items():
        file, content = ("", value.encode()) if isinstance(value, str) else value
        of_file = f'; filename="{file}"\r\nContent-Type: application/octet-stream' if file else ""
        head = f'--=x\r\nContent-Disposition: form-data; name="{name}"{of_file}\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return {
        "content": body + b"--=x--\r\n",
        "headers": {"content-type": f'multipart/form-data; boundary="=x"{charset}'},
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


GREEK, FORM = "Größe λ 日本 1+1 100%", "application/x-www-form-urlencoded"
LATIN = "; charset=ISO-8859-1"
KOI = "; charset=koi8-r"


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"content": f"q={GREEK}".encode()}, GREEK.replace("+", " ")),
        ({"content": f"q={quote(GREEK)}".encode()}, GREEK),
        ({"content": f"q={quote('λ ')}λ+%2B".encode()}, "λ λ +"),
        ({"content": "q=Größe".encode("latin-1"), "charset": LATIN}, "Größe"),
        ({"content": b"q=Gr%F6%DFe", "charset": LATIN}, "Größe"),
        ({"content": "q=Собака".encode("koi8-r"), "charset": KOI}, "Собака"),
        ({"content": b"", "query": f"q={quote(GREEK)}".encode()}, GREEK),
        (multipart(q=GREEK), GREEK),
        (multipart(LATIN, q=GREEK), GREEK.encode().decode("latin-1")),
    ],
)
def test_the_letters_of_a_form_are_those_of_its_charset(sent: dict[str, Any], text: str) -> None:
    kind = sent.get("headers", {}).get("content-type") or FORM + sent.get("charset", "")
    scope = {"type": "http", "query_string": sent.get("query", b"")}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": sent["content"]}

    request = Request(scope | {"headers": [(b"content-type", kind.encode())]}, receive)
    assert asyncio.run(form_fields(request, 1000)) == {"q": text}


def test_texts_of_a_form_are_a_list_and_their_lines_end_as_in_forms(client: TestClient) -> None:
    expected = client.post("/translate", json={"q": [DOG, KING]}).json()
    assert client.post("/translate", data={"q": [DOG, KING]}).json() == expected
    several = client.post("/translate", data={**FIELDS, "q": [DOG, KING], "source": "auto"}).json()
    assert several["detectedLanguage"] == [{"confidence": 100, "language": "en"}] * 2
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


def test_the_python_client_asks_for_the_languages_with_a_form(client: TestClient) -> None:
    assert client.request("GET", "/languages", data={"api_key": ""}).json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        (DOG, ["en"]),
        (HUND, ["de"]),
        ([DOG, KING], ["en"]),
        (DOG.upper(), ["en"]),
        (f'<a href="x.html">{HUND}</a> https://example.org/the/dog {{the}} 1,250', ["de"]),
        ("The king sees the kangaroo.", ["en"]),
        ("Собака спит.", []),
        ("ファイルを開く", []),
        ("关闭新的文件夹", []),
        ("อากาศวันนี้ดีมาก", []),
        ("السلام عليكم", []),
        ("오늘 날씨가 좋네요", []),
        ("Missä on asema?", []),
        ("Où est la bibliothèque ?", []),
        ("Waar is het huis van de koning?", []),
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
    translator = second.texts.sentence_translator
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
    assert (settings["charLimit"], settings["keyRequired"]) == (20_000, False)
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert ".srt" in settings["supportedFilesFormat"]

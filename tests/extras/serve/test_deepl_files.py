"""The clients of DeepL: glossaries, also after a restart, and documents in the background."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from nmt.errors import DataError
from nmt.extras.serve import deepl
from nmt.extras.serve.answers import ServedRun
from tests.extras.serve.conftest import DOG, TOKEN, Gate, client_of, until
from tests.extras.serve.test_deepl import KEY, NO_TOKEN, message_of, texts_of

V2, V3 = "/v2/glossaries", "/v3/glossaries"
ANIMALS = {"name": "animals", "source_lang": "EN", "target_lang": "de-DE", "entries": "dog\tKatze"}
PAIR = {"source_lang": "en", "target_lang": "de"}
ROWS = [{"source_lang": "EN", "target_lang": "DE", "entries": "dog\tKatze\ntree\tHaus"}]


@pytest.fixture
def client(served: list[ServedRun]) -> Iterator[TestClient]:
    with client_of(served, token=TOKEN, characters=2000) as client:
        client.headers.update(KEY)
        yield client


def translate(client: TestClient, **fields: Any) -> Any:
    return client.post("/v2/translate", json={"text": DOG, "target_lang": "DE", **fields})


def test_a_glossary_of_version_2(client: TestClient) -> None:
    made = client.post(V2, json=ANIMALS)
    about = made.json()
    key = about["glossary_id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", about["creation_time"])
    del about["creation_time"]
    expected = {"glossary_id": key, "name": "animals", "ready": True, "entry_count": 1, **PAIR}
    assert (made.status_code, about) == (201, expected)
    assert client.get(V2).json() == {"glossaries": [made.json()]}
    assert client.get(f"{V2}/{key}").json() == made.json()
    table = client.get(f"{V2}/{key}/entries")
    assert table.text == "dog\tKatze"
    assert table.headers["content-type"].startswith("text/tab-separated-values")
    assert "Katze" in texts_of(translate(client, glossary_id=key))[0]
    assert "Katze" not in texts_of(translate(client))[0]
    assert client.get("/v2/glossary-language-pairs").json() == {"supported_languages": [PAIR]}
    assert client.delete(f"{V2}/{key}").status_code == 204
    gone = (404, f"there is no glossary {key!r}")
    for answer in (
        client.get(f"{V2}/{key}"),
        client.get(f"{V2}/{key}/entries"),
        client.delete(f"{V3}/{key}"),
        translate(client, glossary_id=key),
    ):
        assert message_of(answer) == gone


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"name": "animals", "dictionaries": ROWS}},
        {
            "data": {"name": "animals"}
            | {f"dictionaries[0].{name}": value for name, value in ROWS[0].items()}
        },
    ],
    ids=["json", "form"],
)
def test_a_glossary_of_version_3(client: TestClient, sent: dict[str, Any]) -> None:
    made = client.post(V3, **sent).json()
    assert made["dictionaries"] == [{**PAIR, "entry_count": 2}]
    assert client.get(V3).json() == {"glossaries": [made]}
    path = f"{V3}/{made['glossary_id']}"
    answer = client.get(f"{path}/entries", params={"source_lang": "EN", "target_lang": "DE"})
    terms = {"entries": "dog\tKatze\ntree\tHaus", "entries_format": "tsv"}
    assert answer.json() == {"dictionaries": [{**PAIR, **terms}]}
    (text,) = texts_of(translate(client, glossary_id=made["glossary_id"], source_lang="EN"))
    assert "Katze" in text
    assert "Haus" in text
    for method in ("PATCH", "PUT"):
        status, error = message_of(client.request(method, path))
        assert (status, error.partition(" a glossary, ")[2]) == (
            405,
            "delete it and make a new one",
        )
    assert client.delete(path).status_code == 204


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": ""}, "name: Field required"),
        ({"entries": ""}, "target_lang, entries: Field required"),
        ({"target_lang": None}, "target_lang, entries: Field required"),
        ({"target_lang": "FR"}, "source, target: no run translates EN-FR; there is en-de"),
        ({"entries": "dog"}, "entries: Value error, each line must be a term and its translation"),
        ({"entries": "dog\t"}, "entries: String should have at least 1 character"),
        ({"entries": f"{'x' * 201}\ta"}, "entries: String should have at most 200 characters"),
        (
            {"entries": "\n".join(f"a{number}\tb" for number in range(501))},
            "entries: Dictionary should have at most 500 items",
        ),
        ({"entries": "dog\ta\nDog\tb"}, "glossary, 'Dog': 'Dog' has two translations, 'a' and 'b'"),
        (
            {"entries": f'a,"{"x" * 140_000}"', "entries_format": "csv"},
            "entries: Value error, each line must be a term and its translation",
        ),
        ({"entries_format": "xls"}, "entries_format: Input should be 'tsv' or 'csv'"),
        ({"dictionaries": [7]}, "dictionaries: Input should be a valid dictionary"),
        ({"dictionaries": [{"target_lang": "DE"}]}, "target_lang, entries: Field required"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_glossary_that_is_refused(client: TestClient, fields: dict[str, Any], error: str) -> None:
    status, text = message_of(client.post(V3, json={**ANIMALS, **fields}))
    assert (status, text[: len(error)]) == (400, error)
    assert client.get(V3).json() == {"glossaries": []}


def test_a_table_with_commas(client: TestClient) -> None:
    table = 'dog,"Kat""ze, groß",EN,DE\r\n\r\ntree,Haus\r\n'
    made = client.post(V2, json={**ANIMALS, "entries": table, "entries_format": "csv"}).json()
    entries = client.get(f"{V2}/{made['glossary_id']}/entries").text
    assert entries == 'dog\tKat"ze, groß\ntree\tHaus'


def test_the_most_glossaries(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepl, "MAX_GLOSSARIES", 1)
    assert client.post(V2, json=ANIMALS).status_code == 201
    full = (400, "there are 1 glossaries; delete one first")
    assert message_of(client.post(V2, json=ANIMALS)) == full


def test_glossaries_outlive_the_server(served: list[ServedRun], tmp_path: Path) -> None:
    folder = tmp_path / "a" / "glossaries"
    with client_of(served, glossaries=folder) as client:
        first, second = (
            client.post(V2, json={**ANIMALS, "auth_key": "secret"}).json() for _ in range(2)
        )
        client.delete(f"{V2}/{first['glossary_id']}")
    (path,) = folder.iterdir()
    assert path.name == f"{second['glossary_id']}.json"
    assert "secret" not in path.read_text(encoding="utf-8")
    with client_of(served, glossaries=folder) as client:
        assert client.get(V2).json() == {"glossaries": [second]}
        assert "Katze" in texts_of(translate(client, glossary_id=second["glossary_id"]))[0]
        # no key leads out of the folder
        for key in ("..%2f..%2fx", "../x", "x%00"):
            assert client.delete(f"{V2}/{key}").status_code in (404, 405)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Katze", "Maus"), encoding="utf-8")
    error = re.escape(f"{path}: is no intact glossary; restore or delete it")
    with pytest.raises(DataError, match=error):
        client_of(served, glossaries=folder)
    with pytest.raises(DataError, match="cannot be written"):
        client_of(served, glossaries=path)


def upload(client: TestClient, name: str = "a.txt", content: str = DOG, **fields: str) -> Any:
    fields = {"target_lang": "DE", **fields}
    return client.post("/v2/document", data=fields, files={"file": (name, content)})


def paths_of(uploaded: Any) -> tuple[str, dict[str, str]]:
    assert uploaded.status_code == 200, uploaded.text
    answer = uploaded.json()
    return f"/v2/document/{answer['document_id']}", {"document_key": answer["document_key"]}


def test_a_document(client: TestClient, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepl, "STATUS_SECONDS", 0.1)
    glossary = client.post(V2, json=ANIMALS).json()["glossary_id"]
    path, key = paths_of(upload(client, content=f"{DOG}\r\n" * 40, glossary_id=glossary))
    number = path.rpartition("/")[2]
    waiting = {"document_id": number, "status": "translating", "seconds_remaining": 5}
    assert client.post(path, json=key).json() == waiting
    early = client.post(f"{path}/result", json=key)
    assert message_of(early) == (503, "the document is not translated yet; ask again later")
    assert early.headers["retry-after"] == "1"
    gate.event.set()
    until(lambda: client.get(path, params=key).json()["status"] == "done")
    done = {"document_id": number, "status": "done", "billed_characters": 40 * len(DOG)}
    assert client.post(path, data=key).json() == done
    no_key = (404, "no such document; they are deleted after 10 minutes")
    for wrong in ({}, {"document_key": "x"}, {"document_key": "ä"}):
        assert message_of(client.post(path, json=wrong)) == no_key
        assert message_of(client.get(f"{path}/result", params=wrong)) == no_key
    file = client.post(f"{path}/result", json=key)
    lines = file.content.decode().split("\r\n")
    assert len(lines) == 41
    assert all("Katze" in line for line in lines[:-1])
    assert client.post(f"{path}/result", json=key).status_code == 404  # once
    assert client.get("/v2/usage").json()["character_count"] == 40 * len(DOG)


@pytest.mark.parametrize(
    ("name", "fields", "status", "error"),
    [
        ("a.pdf", {}, 400, "a.pdf: "),
        ("a.xyz", {}, 400, "a.xyz: unknown format; these are known: .txt, "),
        ("a.txt", {"filename": "b.xyz"}, 400, "b.xyz: unknown format"),
        ("a.txt", {"output_format": "pdf"}, 400, "output_format: a document keeps its format"),
        ("a.txt", {"target_lang": "FR"}, 400, "source, target: no run translates auto-FR"),
        ("a.txt", {"target_lang": ""}, 400, "target_lang: Field required"),
        ("a.txt", {"glossary_id": "x"}, 404, "there is no glossary 'x'"),
    ],
)
def test_a_document_that_is_refused(
    client: TestClient, name: str, fields: dict[str, str], status: int, error: str
) -> None:
    found, text = message_of(upload(client, name, **fields))
    assert (found, text[: len(error)]) == (status, error)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.docx", "no docx", "a.docx"),
        ("a.txt", "x" * 2001, "2,001 characters; a request has at most 2,000; split it"),
    ],
)
def test_a_document_that_fails(client: TestClient, name: str, content: str, error: str) -> None:
    path, key = paths_of(upload(client, name, content))
    until(lambda: client.post(path, json=key).json()["status"] != "translating")
    state = client.post(path, json=key).json()
    assert (state["status"], state["error_message"][: len(error)]) == ("error", error)
    assert message_of(client.post(f"{path}/result", json=key)) == (400, state["error_message"])


def test_a_defect_is_told_and_logged(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nmt.extras.serve.app.translated_name", lambda *_: 1 / 0)
    path, key = paths_of(upload(client))
    until(lambda: client.post(path, json=key).json()["status"] == "error")
    text = "an error inside the server; its log has the details"
    assert client.post(path, json=key).json()["error_message"] == text
    assert "ZeroDivisionError" in caplog.text


def test_documents_are_bounded_and_deleted(
    served: list[ServedRun], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl, "MAX_DOCUMENTS", 2)
    monkeypatch.setattr(deepl, "KEPT_SECONDS", 0.2)
    monkeypatch.setattr(deepl, "STATUS_SECONDS", 0.1)
    with client_of(served, queue=1) as client:
        asked = [paths_of(upload(client)) for _ in range(2)]
        full = upload(client)
        assert message_of(full) == (503, "2 documents are being translated; try again later")
        assert full.headers["retry-after"] == "1"
        gate.event.set()
        for path, key in asked:  # the queue of a single line refuses none
            until(lambda path=path, key=key: client.post(path, json=key).status_code == 404)
        assert upload(client).status_code == 200


def test_all_need_the_token(served: list[ServedRun]) -> None:
    with client_of(served, token=TOKEN) as client:
        for method, path in (
            ("GET", "/v2/languages"),
            ("GET", "/v2/usage"),
            ("GET", V2),
            ("POST", V3),
            ("GET", f"{V3}/x"),
            ("DELETE", f"{V2}/x"),
            ("GET", f"{V2}/x/entries"),
            ("GET", "/v2/glossary-language-pairs"),
            ("POST", "/v2/document"),
            ("POST", "/v2/document/x"),
            ("GET", "/v2/document/x/result"),
        ):
            assert message_of(client.request(method, path)) == (403, NO_TOKEN), path
            other = {"sec-fetch-site": "cross-site", **KEY}
            assert message_of(client.request(method, path, headers=other))[0] == 403


def test_a_document_of_ten_mebibytes_is_too_large(client: TestClient) -> None:
    answer = upload(client, content="x" * (10 << 20))
    assert message_of(answer) == (413, "the request is larger than 10,485,760 bytes; split it")

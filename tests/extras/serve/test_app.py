"""The API: answers, errors, limits, token, and what it says of itself."""

import http.client
import json
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from nmt.extras.page.files import linked
from nmt.extras.serve import guard
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.schemas import TranslateAnswer
from tests.conftest import Run
from tests.extras.serve.conftest import DOG, KING, TOKEN, Gate, client_of, error_of, serving, until

DEEP = "glossary: Value error, nested too deep"
FORM = "application/x-www-form-urlencoded"
NO_TOKEN = (
    "is not in the target vocabulary; choose a word before this placeholder, tag, term or unknown "
    "word"
)
ONE_LINE = "prefix: only for a single line of text, without a glossary"
NOT_JSON = "the body must be a JSON object, sent as application/json"
TOO_LONG = "20,001 characters; a request has at most 20,000; split it"


def connection_to(address: str) -> http.client.HTTPConnection:
    host, _, port = address.removeprefix("http://").partition(":")
    return http.client.HTTPConnection(host, int(port), timeout=20)


def test_translations_are_those_of_the_command_line(
    client: TestClient, nmt: Run, folder: Path
) -> None:
    expected = nmt("translate", "--run", folder / "run", "--n-best", 3, DOG).out.splitlines()
    texts = [line.split(" ||| ")[1] for line in expected]
    answer = client.post("/translate", json={"q": DOG, "alternatives": 2}).json()
    assert answer == {"translatedText": texts[0], "alternatives": texts[1:], "run": "run"}
    assert client.post("/translate", json={"q": DOG}).json() == {
        "translatedText": texts[0],
        "run": "run",
    }
    several = client.post(
        "/translate", json={"q": [DOG, "", f"{DOG}\r\n\n{KING}"], "run": "run-2"}
    ).json()
    king = client.post("/translate", json={"q": KING}).json()["translatedText"]
    assert several == {"translatedText": [texts[0], "", f"{texts[0]}\n\n{king}"], "run": "run-2"}
    started = nmt("translate", "--run", folder / "run", "--prefix", "Der König", DOG).out.strip()
    answer = client.post("/translate", json={"q": DOG, "prefix": "Der König"}).json()
    assert answer["translatedText"] == started


def test_details_are_those_of_the_command_line(client: TestClient, nmt: Run, folder: Path) -> None:
    text = "The dog qqq the tree."
    expected = json.loads(
        nmt("translate", "--run", folder / "run", "--json", "--n-best", 2, text).out
    )
    answer = client.post(
        "/translate", json={"q": [text, ""], "alternatives": 1, "details": True}
    ).json()
    TranslateAnswer.model_validate(answer)
    line, empty = answer["lines"]
    assert (empty["translations"], empty["src_words"]) == ([], [])
    assert (line["source"], line["src_words"], line["src_cut"]) == (text, text.split(), False)
    for translation, values in zip(line["translations"], expected["n_best"], strict=True):
        for key, value in values.items():
            assert translation[key] == (
                pytest.approx(value, rel=1e-4) if "prob" in key or key == "score" else value
            ), key
        words = translation["words"]
        assert "".join(word["before"] + word["text"] for word in words) == translation["text"]
        assert [len(row) for row in translation["attention"]] == [len(text.split()) + 1] * len(
            words
        )
        assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in translation["attention"])
        origins = [replaced["origin"] for replaced in translation["replaced"]]
        assert [word["origin"] for word in words if word["origin"] != "model"] == origins


def test_what_there_is(client: TestClient) -> None:
    runs = [
        {"name": name, "source": "en", "target": "de", "translations": 5}
        for name in ("run", "run-2")
    ]
    assert client.get("/runs").json() == runs
    health = client.get("/health")
    assert (health.status_code, health.json()["status"]) == (200, "ok")
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/translate",
        "/listPairs",
        "/spec",
        "/translate_file",
        "/download_file/{key}",
        "/alternatives",
        "/tree",
        "/detect",
        "/runs",
        "/languages",
        "/frontend/settings",
        "/health",
    }
    assert set(paths["/translate"]["post"]["responses"]) == {"200", "default"}


def test_the_page_loads_nothing_from_elsewhere(client: TestClient) -> None:
    names = linked(client.get("/").text)
    assert {"report.css", "request_server.js"} <= {*names}
    for name in ("", *names):
        response = client.get(f"/{name}")
        assert response.status_code == 200
        assert response.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self';"
        )
        assert "//" not in response.text.replace("// ", "").replace(
            "http://www.w3.org/2000/svg", ""
        )
        assert "access-control-allow-origin" not in response.headers


def posted(path: str, status: int, error: str, **fields: Any) -> Any:
    """A row of the table below: fields in JSON."""
    return path, {"json": fields}, status, error


def sent(kind: str, body: bytes, status: int, error: str) -> Any:
    return "/translate", {"content": body, "headers": {"content-type": kind}}, status, error


def uploaded(name: str, content: str | bytes, status: int, error: str, **fields: str) -> Any:
    return "/translate_file", {"data": fields, "files": {"file": (name, content)}}, status, error


@pytest.mark.parametrize(
    ("path", "sent", "status", "error"),
    [
        posted("/translate", 422, "q: Field required"),
        posted(
            "/translate",
            422,
            "q: Input should be a valid string; Input should be a valid list",
            q=3,
        ),
        posted(
            "/translate",
            422,
            "q: Input should be a valid string; List should have at least 1 item after validation, "
            "not 0",
            q=[],
        ),
        posted("/translate", 422, "beam: Extra inputs are not permitted", q=DOG, beam=3),
        posted("/translate", 422, "format: Input should be 'text' or 'html'", q=DOG, format="rtf"),
        posted(
            "/translate",
            422,
            "alternatives: Input should be greater than or equal to 0",
            q=DOG,
            alternatives=-1,
        ),
        posted(
            "/translate",
            422,
            "alternatives: run run has at most 4; `nmt serve --beam` sets a larger beam",
            q=DOG,
            alternatives=5,
        ),
        posted("/translate", 422, "run: there is no 'x'; the runs are run, run-2", q=DOG, run="x"),
        posted(
            "/translate",
            422,
            "source, target: no run translates auto-fr; there is en-de",
            q=DOG,
            target="fr",
        ),
        posted(
            "/translate",
            422,
            "source, target: no run translates de-auto; there is en-de",
            q=DOG,
            run="run",
            source="de",
        ),
        posted(
            "/translate",
            422,
            "prefix 'Der Zebra': 'Zebra' is not in the target vocabulary",
            q=DOG,
            prefix="Der Zebra",
        ),
        posted("/translate", 422, ONE_LINE, q=DOG, format="html", prefix="Der"),
        posted("/translate", 422, ONE_LINE, q=f"{DOG}\n{DOG}", prefix="Der"),
        posted(
            "/translate",
            422,
            "glossary: String should have at least 1 character",
            q=DOG,
            glossary={"a": ""},
        ),
        posted(
            "/translate",
            422,
            "glossary: String should have at most 200 characters",
            q=DOG,
            glossary={"a": "x" * 201},
        ),
        posted(
            "/translate",
            422,
            "glossary: Dictionary should have at most 500 items after validation, not more",
            q=DOG,
            glossary={str(i): "a" for i in range(501)},
        ),
        posted(
            "/translate",
            413,
            "20,022 characters; a request has at most 20,000; split it",
            q=[DOG, "x" * 20_000],
        ),
        posted("/translate", 413, "129 lines; a request has at most 128; split it", q="\n" * 128),
        posted("/alternatives", 422, f"token 'zebra' {NO_TOKEN}", q=DOG, tokens=["zebra"]),
        posted("/alternatives", 422, f"token '<eos>' {NO_TOKEN}", q=DOG, tokens=["<eos>"]),
        posted(
            "/alternatives",
            422,
            "the text is empty, so its translation has no alternatives",
            q="",
            tokens=[],
        ),
        posted("/alternatives", 422, "q: only one line of text", q="a\nb", tokens=[]),
        posted("/alternatives", 422, "tokens: Input should be a valid list", q=DOG, tokens="Der"),
        posted(
            "/alternatives",
            422,
            "alternatives: Input should be less than or equal to 50",
            q=DOG,
            tokens=[],
            alternatives=51,
        ),
        posted("/alternatives", 422, "tokens: Field required", q=DOG),
        posted(
            "/alternatives",
            422,
            "tokens: List should have at most 1000 items after validation, not 1001",
            q=DOG,
            tokens=["a"] * 1001,
        ),
        posted("/tree", 422, "q: only one line of text", q="a\nb"),
        posted(
            "/tree", 422, "there is no beam: the text is empty, or the run draws samples", q=" "
        ),
        posted("/tree", 413, TOO_LONG, q="x" * 20_001),
        posted("/detect", 413, TOO_LONG, q="x" * 20_001),
        sent("application/json", b'{"q":', 400, "the body is not JSON: Expecting value"),
        sent("application/json", b"\xff", 400, "There was an error parsing the body"),
        sent("application/json", b"[" * 9000, 400, "There was an error parsing the body"),
        sent("application/json", b'{"q": null}', 422, "q: Field required"),
        sent("application/json", b'["q"]', 422, NOT_JSON),
        sent("application/json", b"", 422, NOT_JSON),
        sent(
            "application/json",
            b'{"q": "\\ud800"}',
            422,
            "q: Value error, 'utf-8' codec can't encode",
        ),
        sent(
            "application/json",
            b'{"q": "a", "target": "\\udfff"}',
            422,
            "target: Value error, 'utf-8' codec can't",
        ),
        sent(
            "application/json",
            b" " * 2_000_000,
            413,
            "the request is larger than 371,072 bytes; split it",
        ),
        sent(FORM, b"x=a&q=b", 422, "x: Extra inputs are not permitted"),
        sent(FORM, b"target=de", 422, "q: Field required"),
        sent(FORM, b'{"q": "a"}', 422, NOT_JSON),
        sent(FORM, b"q=Gr\xf6\xdfe", 400, "the form cannot be read as utf-8 ('utf-8' codec can't"),
        sent(FORM, b"q=Gr%F6%DFe", 400, "the form cannot be read as utf-8 ('utf-8' codec can't"),
        sent(f"{FORM}; charset=isox", b"q=a", 400, "the form cannot be read as isox (unknown enc"),
        sent(f"{FORM}; charset=utf-16", b"q=a", 400, "the form cannot be read as utf-16"),
        sent(f"{FORM}; charset=punycode", b"q=\xe4", 400, "the form cannot be read as utf-8"),
        sent(FORM, b"q=a&" * 1001, 400, "the form cannot be read as utf-8 (Max number of fields"),
        sent("multipart/form-data", b"--x\r\n", 400, "Missing boundary in multipart."),
        sent("multipart/form-data; boundary=x", b"--x\r\n\r\nq", 400, "The Content-Disposition"),
        sent("multipart/form-data; boundary=x", b"", 422, "q: Field required"),
        ("/translate_file", {"data": {"source": "en"}}, 422, "file: Field required"),
        (
            "/translate_file",
            {"files": [("file", ("a.txt", DOG)), ("file", ("b.txt", KING))]},
            422,
            "file: Input should be a valid bytes",
        ),
        uploaded("a.xyz", b"a", 422, "a.xyz: unknown format; these are known: .txt, "),
        uploaded("a.txt", b"a\xff", 422, "a.txt, line 1: not UTF-8"),
        uploaded("a.txt", b"x" * 20_001, 413, TOO_LONG),
        uploaded("a.txt", DOG, 422, "source, target: no run translates auto-fr", target="fr"),
        uploaded("a.txt", DOG, 422, "glossary: Value error, Expecting property name", glossary="{"),
        uploaded("a.txt", DOG, 422, DEEP, glossary="[" * 50_000),
        uploaded("a.txt", DOG, 422, DEEP, glossary='{"a":' * 50_000),
        posted("/translate", 422, DEEP, q=DOG, glossary="[" * 50_000),
        uploaded("a.txt", DOG, 422, "glossary: Input should be a valid dictionary", glossary="[]"),
        uploaded("a.txt", b"x" * (10 << 20), 413, "the request is larger than 10,485,760 bytes"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_refused(
    client: TestClient, path: str, sent: dict[str, Any], status: int, error: str
) -> None:
    found, text = error_of(client.post(path, **sent))
    assert (found, text[: len(error)]) == (status, error)


def test_a_body_that_does_not_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.05)
    with serving([]) as address, closing(connection_to(address)) as connection:
        connection.putrequest("POST", "/translate")
        connection.putheader("content-length", "9")
        connection.endheaders(b"{")
        assert connection.getresponse().status == 408


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        *(
            ("host", host, f"the header Host is {host!r}; this server has only the names ")
            for host in (
                "example.com",
                "127.0.0.1.example.com:8000",
                "",
                "[",
                "localhost.",
                "127.0.0.1@example.com",
                "example.com@127.0.0.1",
            )
        ),
        *(
            ("origin", origin, f"the request comes from a page of {origin}, not of this server")
            for origin in ("http://example.com", "null", "http://127.0.0.1:9000", "http://[")
        ),
        ("origin", "http://a\ufeff[", "the request comes from a page of http://aï»¿["),
    ],
)
def test_other_hosts_and_pages_of_other_sites_are_refused(
    client: TestClient, name: str, value: str, problem: str
) -> None:
    headers = [(name.encode(), value.encode())]
    status, text = error_of(client.post("/translate", json={"q": DOG}, headers=headers))
    assert (status, text[: len(problem)]) == (403, problem)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "[::1]:8000", "127.0.0.1"])
def test_names_of_this_machine_and_its_page_are_accepted(client: TestClient, host: str) -> None:
    headers = {"host": host, "origin": f"http://{host}"}
    assert client.post("/translate", json={"q": ""}, headers=headers).status_code == 200


def test_a_token(served: list[ServedRun]) -> None:
    text = "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`, or as api_key"
    with client_of(served, token=TOKEN) as client:
        assert error_of(client.get("/runs")) == (401, text)
        for name, value, status in (
            ("Bearer", TOKEN, 200),
            ("DeepL-Auth-Key", TOKEN, 200),
            ("Basic", b64encode(f"nmt:{TOKEN}".encode()).decode(), 200),
            ("Bearer", f"{TOKEN}x", 401),
            ("DeepL-Auth-Key", "", 401),
            ("Basic", b64encode(TOKEN.encode()).decode(), 401),
            ("Basic", "=", 401),
            ("Basic", b64encode(b"nmt:\xff").decode(), 401),
            ("Digest", TOKEN, 401),
        ):
            headers = {"authorization": f"{name} {value}"}
            assert client.get("/runs", headers=headers).status_code == status, name
        right = {"authorization": f"Bearer {TOKEN}"}
        for path in ("/translate", "/tree", "/alternatives"):
            fields: dict[str, Any] = {"q": DOG, **({} if path[:2] == "/t" else {"tokens": []})}
            assert error_of(client.post(path, json=fields)) == (401, text)
            assert error_of(client.post(path, json={**fields, "api_key": "Ä"})) == (401, text)
            assert client.post(path, json={**fields, "api_key": TOKEN}).status_code == 200
            assert client.post(path, json=fields, headers=right).status_code == 200
        for path in ("/", "/health", "/languages", "/listPairs", "/spec", "/frontend/settings"):
            assert client.get(path).status_code == 200, path
        assert client.get("/health", headers={"host": "example.com"}).status_code == 200


def test_a_request_whose_client_is_gone_leaves_the_queue(
    served: list[ServedRun], gate: Gate
) -> None:
    body = json.dumps({"q": DOG})
    with serving(served, queue=1, timeout=0.5) as address:

        def connect() -> http.client.HTTPConnection:
            connection = connection_to(address)
            connection.request("POST", "/translate", body, {"content-type": "application/json"})
            return connection

        def answer() -> tuple[int, str | None]:
            with closing(connect()) as connection, connection.getresponse() as response:
                response.read()
                return response.status, response.getheader("retry-after")

        assert answer() == (504, None)  # it is still being translated
        waiting = connect()
        until(lambda: answer() == (503, "1"))
        waiting.close()
        until(lambda: answer() == (504, None))
        gate.event.set()

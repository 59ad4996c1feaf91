"""The API: answers, errors, limits, token, and what it says of itself."""

import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from math import exp
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from fastapi.testclient import TestClient

from nmt.decoding.forced import score_pairs
from nmt.extras.page.files import linked
from nmt.extras.serve import guard as module
from nmt.extras.serve.answers import MIN_PROBABILITY, ServedRun, find_alternatives, group_words
from nmt.extras.serve.app import Api, create_app
from nmt.extras.serve.schemas import AlternativesAnswer, TranslateAnswer
from nmt.extras.serve.schemas import Run as RunInfo
from nmt.texts.translator import TextTranslator
from tests.conftest import Run
from tests.decoding.test_translator import make_translator
from tests.extras.serve.conftest import Gate, serving, until

DOG, KING = "The dog sees the tree.", "The king loves the river."
HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
TOKEN = "a token of some length"
NO_TOKEN = (
    "is not in the target vocabulary; choose a word before this placeholder, tag, term or unknown "
    "word"
)


def client_of(runs: Sequence[ServedRun], *, token: str | None = None, **limits: Any) -> TestClient:
    app = create_app(Api(runs, token=token, **limits), hosts=None if token else HOSTS)
    return TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.fixture
def client(served: list[ServedRun]) -> Iterator[TestClient]:
    with client_of(served, characters=200) as client:
        yield client


def connection_to(address: str) -> http.client.HTTPConnection:
    host, _, port = address.removeprefix("http://").partition(":")
    return http.client.HTTPConnection(host, int(port), timeout=20)


def error_of(response: Any) -> tuple[int, str]:
    """The status and the error, which is the only content and has one line."""
    (name, text) = next(iter(response.json().items()))
    assert (name, len(response.json()), text.count("\n")) == ("error", 1, 0)
    return response.status_code, text


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


def test_the_alternatives_for_a_word(client: TestClient) -> None:
    lines = client.post("/translate", json={"q": DOG, "details": True}).json()["lines"]
    details = lines[0]["translations"][0]
    word = details["words"][2]
    fields = {"q": DOG, "tokens": details["tokens"][: word["token"]], "alternatives": 4}
    answer = client.post("/alternatives", json=fields).json()
    AlternativesAnswer.model_validate(answer)
    words = [alternative["word"] for alternative in answer["alternatives"]]
    texts = [alternative["translation"]["text"] for alternative in answer["alternatives"]]
    assert (words[0], texts[0]) == (word["text"], details["text"])
    start = details["text"].split()[:2]
    assert [text.split()[:3] for text in texts] == [[*start, word] for word in words]
    assert len({*texts}) == len(texts)
    assert [alternative["warnings"] for alternative in answer["alternatives"]] == [[]] * len(texts)
    # a token of the details that is several ones for the model, such as a number
    one = client.post("/alternatives", json={**fields, "tokens": [" ".join(start)]}).json()
    assert one == answer


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
        "/translate_file",
        "/download_file/{key}",
        "/alternatives",
        "/without",
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


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({}, 422, "q: Field required"),
        ({"q": 3}, 422, "q: Input should be a valid string; Input should be a valid list"),
        (
            {"q": []},
            422,
            (
                "q: Input should be a valid string; List should have at least 1 item after "
                "validation, not 0"
            ),
        ),
        ({"q": DOG, "beam": 3}, 422, "beam: Extra inputs are not permitted"),
        ({"q": DOG, "format": "rtf"}, 422, "format: Input should be 'text' or 'html'"),
        (
            {"q": DOG, "alternatives": -1},
            422,
            "alternatives: Input should be greater than or equal to 0",
        ),
        (
            {"q": DOG, "alternatives": 5},
            422,
            "alternatives: run run has at most 4; `nmt serve --beam` sets a larger beam",
        ),
        ({"q": DOG, "run": "x"}, 422, "run: there is no 'x'; the runs are run, run-2"),
        (
            {"q": DOG, "target": "fr"},
            422,
            "source, target: no run translates auto-fr; there is en-de",
        ),
        (
            {"q": DOG, "run": "run", "source": "de"},
            422,
            "source, target: no run translates de-auto; there is en-de",
        ),
        (
            {"q": DOG, "prefix": "Der Zebra"},
            422,
            "prefix 'Der Zebra': 'Zebra' is not in the target vocabulary",
        ),
        (
            {"q": DOG, "format": "html", "prefix": "Der"},
            422,
            "prefix: only for a single line of text, without a glossary",
        ),
        (
            {"q": DOG, "glossary": {"a": ""}},
            422,
            "glossary: String should have at least 1 character",
        ),
        (
            {"q": DOG, "glossary": {"a": "x" * 201}},
            422,
            "glossary: String should have at most 200 characters",
        ),
        (
            {"q": DOG, "glossary": {str(i): "a" for i in range(501)}},
            422,
            "glossary: Dictionary should have at most 500 items after validation, not more",
        ),
        (
            {"q": f"{DOG}\n{DOG}", "prefix": "Der"},
            422,
            "prefix: only for a single line of text, without a glossary",
        ),
        ({"q": [DOG, "x" * 200]}, 413, "222 characters; a request has at most 200; split it"),
        ({"q": "\n" * 128}, 413, "129 lines; a request has at most 128; split it"),
        ({"q": DOG, "tokens": ["zebra"]}, 422, f"token 'zebra' {NO_TOKEN}"),
        ({"q": DOG, "tokens": ["<eos>"]}, 422, f"token '<eos>' {NO_TOKEN}"),
        ({"q": "", "tokens": []}, 422, "the text is empty, so its translation has no alternatives"),
        ({"q": "a\nb", "tokens": []}, 422, "q: only one line of text"),
        ({"q": DOG, "tokens": "Der"}, 422, "tokens: Input should be a valid list"),
        (
            {"q": DOG, "tokens": [], "alternatives": 51},
            422,
            "alternatives: Input should be less than or equal to 50",
        ),
    ],
)
def test_invalid_requests(
    client: TestClient, fields: dict[str, Any], status: int, text: str
) -> None:
    path = "/alternatives" if "tokens" in fields else "/translate"
    assert error_of(client.post(path, json=fields)) == (status, text)


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b'{"q":', 400, "the body is not JSON: Expecting value"),
        (b"\xff", 400, "There was an error parsing the body"),
        (b"[" * 9000, 400, "There was an error parsing the body"),
        (b'{"q": null}', 422, "q: Field required"),
        (b'["q"]', 422, "the body must be a JSON object, sent as application/json"),
        (b"", 422, "the body must be a JSON object, sent as application/json"),
        (b'{"q": "\\ud800"}', 422, "q: Value error, 'utf-8' codec can't encode"),
        (b'{"q": "a", "target": "\\udfff"}', 422, "target: Value error, 'utf-8' codec can't"),
        (b" " * 2_000_000, 413, "the request is larger than 133,472 bytes; split it"),
    ],
)
def test_invalid_bodies(client: TestClient, body: bytes, status: int, text: str) -> None:
    response = client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert (response.status_code, error_of(response)[1][: len(text)]) == (status, text)


def test_a_body_that_does_not_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_SECONDS", 0.05)
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
        right, wrong = {"authorization": f"Bearer {TOKEN}"}, {"authorization": f"Bearer {TOKEN}x"}
        for path in ("/runs", "/languages"):
            assert error_of(client.get(path)) == (401, text)
            assert error_of(client.get(path, headers=wrong)) == (401, text)
            assert client.get(path, headers=right).status_code == 200
        for path in ("/translate", "/tree", "/alternatives", "/without"):
            fields: dict[str, Any] = {"q": DOG, **({} if path[:2] == "/t" else {"tokens": []})}
            assert error_of(client.post(path, json=fields)) == (401, text)
            assert error_of(client.post(path, json={**fields, "api_key": "Ä"})) == (401, text)
            assert client.post(path, json={**fields, "api_key": TOKEN}).status_code == 200
            assert client.post(path, json=fields, headers=right).status_code == 200
        assert client.get("/health").status_code == client.get("/").status_code == 200
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
        gate.open()


def test_words_of_scripts_without_spaces_are_tokens() -> None:
    tokenizer = make_translator("words").tgt_tokenizer
    assert group_words("你好。 Hund", ["你好", "￭。", "Hund"], tokenizer) == (
        ["你好", "。", "Hund"],
        [0, 1, 2],
    )
    assert group_words("Na, so was!", ["Na", "￭,", "so", "was", "￭!"], tokenizer) == (
        ["Na,", "so", "was!"],
        [0, 0, 1, 2, 2],
    )


def test_each_alternative_starts_with_the_given_tokens_and_its_own() -> None:
    """And its probability is that of forced decoding."""
    translator = make_translator()
    info = RunInfo(name="", source="en", target="en", translations=3)
    run = ServedRun(info, TextTranslator(translator))
    n_scored = 0
    for text, prefix in [("abab", ["a"]), ("b", []), ("ab ab", [])]:
        alternatives = [*find_alternatives(run, text, prefix, 3)]
        probabilities = [each["probability"] for each in alternatives]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(probability >= MIN_PROBABILITY for probability in probabilities[1:])
        nexts = {each["translation"]["tokens"][len(prefix)] for each in alternatives}
        assert len(nexts) == len(alternatives)
        for each in alternatives:
            tokens = each["translation"]["tokens"][: len(prefix) + 1]
            assert tokens[: len(prefix)] == (*prefix,)
            (scored,) = score_pairs(translator, [(text, translator.tgt_tokenizer.join(tokens))])
            if scored.tokens == tokens:  # a space at the end is not part of the text
                expected = exp(scored.token_log_probs[len(prefix)])
                assert each["probability"] == pytest.approx(expected, abs=1e-4)
                n_scored += 1
    assert n_scored

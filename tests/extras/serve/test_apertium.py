"""The clients of Apertium; addresses with a text in them; and requests that other sites cause."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.app import known_code
from tests.extras.serve.conftest import DOG, TOKEN, client_of

NO_PAIR = "source, target: no run translates en-fr; there is en-de"
NO_TOKEN = "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`, or as api_key"


@pytest.fixture
def client(served: list[ServedRun]) -> Iterator[TestClient]:
    with client_of(served, token=TOKEN, characters=200) as client:
        yield client


@pytest.mark.parametrize(
    "fields",
    [
        {"langpair": "en|de", "markUnknown": "no", "key": TOKEN},
        {"langpair": "en_US|de_DE", "key": TOKEN},
        {"source": "EN-us", "target": "de", "api_key": TOKEN},
        {"api_key": TOKEN},
    ],
)
def test_a_text_in_the_address(
    client: TestClient, served: list[ServedRun], fields: dict[str, str]
) -> None:
    text = served[0].texts.sentence_translator.translate([DOG])[0].text
    answer = client.get("/translate", params={"q": DOG, **fields})
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "responseData": {"translatedText": text},
            "responseDetails": None,
            "responseStatus": 200,
            "translatedText": text,
        },
    )


@pytest.mark.parametrize(
    ("fields", "headers", "status", "error"),
    [
        ({"q": DOG, "langpair": "en|fr", "key": TOKEN}, {}, 422, NO_PAIR),
        ({"langpair": "en|de", "key": TOKEN}, {}, 422, "q: Field required"),
        ({"q": "x" * 201, "key": TOKEN}, {}, 413, "201 characters; a request has at most 200; "),
        ({"q": DOG, "langpair": "en|de"}, {}, 401, NO_TOKEN),
        ({"q": DOG, "key": "wrong"}, {}, 401, NO_TOKEN),
        (
            {"q": DOG, "key": TOKEN},
            {"origin": "http://example.org"},
            403,
            "the request comes from a page of http://example.org",
        ),
    ],
)
def test_an_error_as_apertium_has_it(
    client: TestClient, fields: dict[str, str], headers: dict[str, str], status: int, error: str
) -> None:
    answer = client.get("/translate", params=fields, headers=headers)
    content: dict[str, Any] = answer.json()
    assert (answer.status_code, content["responseStatus"], content["responseData"]) == (
        status,
        status,
        None,
    )
    assert content["responseDetails"].startswith(error)


def test_the_languages(client: TestClient) -> None:
    pairs = client.get("/listPairs").json()
    assert pairs == {
        "responseData": [{"sourceLanguage": "en", "targetLanguage": "de"}],
        "responseDetails": None,
        "responseStatus": 200,
    }
    assert client.post("/languages", data={"api_key": ""}).json() == client.get("/languages").json()
    assert client.get("/spec").json()["info"]["title"] == "LibreTranslate"


@pytest.mark.parametrize(
    ("path", "site", "status"),
    [
        (f"/translate?q=a&key={TOKEN}", "cross-site", 403),
        (f"/translate?q=a&key={TOKEN}", "same-site", 403),
        (f"/translate?q=a&key={TOKEN}", "same-origin", 200),
        (f"/translate?q=a&key={TOKEN}", "none", 200),
        ("/listPairs", "cross-site", 403),
        ("/no/such/path", "cross-site", 403),
        ("/", "cross-site", 200),
        ("/page.css", "cross-site", 200),
        ("/download_file/x", "cross-site", 404),  # whoever knows the key
    ],
)
def test_other_sites_may_only_link_to_the_page(
    client: TestClient, path: str, site: str, status: int
) -> None:
    assert client.get(path, headers={"sec-fetch-site": site}).status_code == status


def test_the_body_of_any_request_is_bounded(client: TestClient) -> None:
    for method in ("GET", "DELETE", "PUT"):
        answer = client.request(method, "/languages", content=b" " * 2_000_000)
        assert answer.status_code == 413, method


@pytest.mark.parametrize(
    ("code", "known", "found"),
    [
        ("DE", ["en", "de"], "de"),
        ("de_AT", ["de", "de-AT"], "de-AT"),
        ("pt-BR", ["pt_BR", "pt"], "pt_BR"),
        ("zh-Hant", ["zh"], "zh"),
        ("pt", ["pt_BR"], "pt"),
        ("auto", ["de"], "auto"),
        ("", ["de"], ""),
    ],
)
def test_codes_of_languages(code: str, known: list[str], found: str) -> None:
    assert known_code(code, known) == found

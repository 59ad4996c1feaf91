"""The Python client of DeepL against a real server."""

from pathlib import Path

import pytest

from nmt.extras.serve.answers import ServedRun
from tests.extras.serve.conftest import DOG, TOKEN, serving

deepl = pytest.importorskip("deepl", reason="a package for tests, not installed")


def test_the_python_client(served: list[ServedRun], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{DOG}\n", encoding="utf-8")
    expected = served[0].texts.sentence_translator.translate([DOG])[0].text
    with serving(served, token=TOKEN) as address:
        client = deepl.DeepLClient(TOKEN, server_url=address, send_platform_info=False)
        answer = client.translate_text(DOG, target_lang="DE")
        assert (answer.text, answer.detected_source_lang) == (expected, "EN")
        assert [each.code for each in client.get_target_languages()] == ["DE"]
        terms = deepl.api_data.MultilingualGlossaryDictionaryEntries("EN", "DE", {"dog": "Katze"})
        glossary = client.create_multilingual_glossary("animals", [terms])
        fields = {"source_lang": "EN", "target_lang": "DE", "glossary": glossary}
        assert "Katze" in client.translate_text(DOG, **fields).text
        done = client.translate_document_from_filepath(
            tmp_path / "a.txt", tmp_path / "b.txt", **fields
        )
        assert (done.done, done.billed_characters) == (True, len(DOG))
        assert "Katze" in (tmp_path / "b.txt").read_text(encoding="utf-8")
        client.delete_multilingual_glossary(glossary)
        assert client.list_multilingual_glossaries() == []
        assert client.get_usage().character.count == 3 * len(DOG)
        wrong = deepl.DeepLClient("wrong", server_url=address)
        with pytest.raises(deepl.AuthorizationException):
            wrong.translate_text(DOG, target_lang="DE")

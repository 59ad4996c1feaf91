"""The API of Apertium, as OmegaT and Weblate use it; and one for a template of an address."""

from typing import Any

from fastapi import Request

from nmt.extras.serve.app import Api
from nmt.extras.serve.schemas import TranslateRequest


class Apertium:
    """The functions that answer requests."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def translate(
        self,
        request: Request,
        q: str,
        langpair: str = "",
        source: str = "",
        target: str = "",
        key: str = "",
        api_key: str = "",
    ) -> dict[str, Any]:
        """Translate a text, as Apertium does. Languages: `langpair` such as en|de, or `source` and
        `target`. Token: `key` or `api_key`.
        """
        first, _, second = langpair.partition("|")
        fields = {"source": first or source, "target": second or target, "api_key": key or api_key}
        body = TranslateRequest.model_validate({"q": q, **fields})
        text = {"translatedText": (await self.api.translation(request, body))["translatedText"]}
        return _answer(text) | text

    async def list_pairs(self) -> dict[str, Any]:
        """The languages of the runs, as Apertium lists them. Needs no token."""
        return _answer(
            [{"sourceLanguage": one, "targetLanguage": other} for one, other in self.api.pairs()]
        )


def _answer(data: Any) -> dict[str, Any]:
    return {"responseData": data, "responseDetails": None, "responseStatus": 200}

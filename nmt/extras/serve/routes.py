"""The web application: a page, and the API that it uses."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from nmt import __version__
from nmt.errors import NmtError
from nmt.extras.page.files import linked, read
from nmt.extras.serve import schemas
from nmt.extras.serve.app import Api
from nmt.extras.serve.deepl import DeepL
from nmt.extras.serve.guard import Guard, on_error

MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
MAX_FILE_BYTES = 10 << 20  # of a request with a file
MAX_BYTES_PER_CHARACTER = 12  # "\ud83d\ude00" in JSON
MAX_OTHER_BYTES = 1 << 17  # of a request, beside its texts: the tokens of a prefix


def create_app(
    api: Api, *, hosts: frozenset[str] | None, on_ready: Callable[[], None] = lambda: None
) -> FastAPI:
    """The application.

    Args:
        hosts: names that the header Host may have; None: any.
        on_ready: called when the server starts to answer.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        on_ready()
        yield

    app = FastAPI(
        title="nmt",
        version=__version__,
        description=__doc__ or "",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": schemas.Error, "description": "refused, or failed"}},
    )
    _add_routes(app, api)
    files = ["index.html", *linked(read("index.html"))]
    paths = [f"/{name}".removesuffix("index.html") for name in files]
    for path, name in zip(paths, files, strict=True):
        app.add_route(path, _file(name))
    for kind in (NmtError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, on_error)

    def max_body(path: str) -> int:
        most = MAX_BYTES_PER_CHARACTER * api.characters + MAX_OTHER_BYTES
        return max(most, MAX_FILE_BYTES) if path in ("/translate_file", "/v2/document") else most

    def is_open(path: str) -> bool:
        return path in paths or path.startswith("/download_file/")

    app.add_middleware(Guard, hosts=hosts, max_body=max_body, is_open=is_open)
    return app


def _add_routes(app: FastAPI, api: Api) -> None:
    gets: dict[str, Callable[..., Any]] = {
        "/translate": api.apertium,
        "/listPairs": api.list_pairs,
        "/download_file/{key}": api.download_file,
        "/runs": api.list_runs,
        "/languages": api.languages,
        "/spec": api.spec,
        "/frontend/settings": api.settings,
        "/health": api.health,
    }
    posts: dict[str, tuple[Callable[..., Any], Any]] = {
        "/translate": (api.translate, schemas.TranslateAnswer),
        "/alternatives": (api.alternatives, schemas.AlternativesAnswer),
        "/tree": (api.tree, schemas.TreeAnswer),
        "/translate_file": (api.translate_file, schemas.FileAnswer),
        "/detect": (api.detect, list[schemas.Detection]),
        "/languages": (api.languages, list[schemas.Language]),
    }
    for path, answer in gets.items():
        app.get(path)(answer)
    for path, (answer, model) in posts.items():
        app.post(path, response_model=model)(answer)
    for methods, path, answer in DeepL(api).routes():
        app.add_route(path, answer, methods=methods)


def _file(name: str) -> Callable[[Request], Response]:
    content, headers = read(name), {"Cache-Control": "no-cache"}
    media_type = MEDIA_TYPES[Path(name).suffix]
    return lambda _request: Response(content, media_type=media_type, headers=headers)

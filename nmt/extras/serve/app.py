"""The web application: a page, and the API that it uses."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from nmt import __version__
from nmt.decoding.batch_runner import TooLargeError
from nmt.errors import ConfigError, DataError, NmtError
from nmt.extras.serve.answers import AlternativesTask, LinesRequest, ServedRun, TranslateTask
from nmt.extras.serve.batcher import Batcher, QueueFullError, Task
from nmt.extras.serve.guard import Guard, RateLimit, RefusedError
from nmt.extras.serve.measurements import Measurements
from nmt.extras.serve.schemas import (
    MAX_TEXTS,
    AlternativesAnswer,
    AlternativesRequest,
    Error,
    Health,
    Language,
    Run,
    TranslateAnswer,
    TranslateRequest,
)

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": description}
    for status, description in {
        400: "the body is not JSON",
        401: "the token is missing or wrong",
        403: "the request is for another host, or comes from a page of another site",
        408: "the request did not arrive in time",
        413: "the text is too long",
        422: "a field is wrong",
        429: "too many requests from this client; Retry-After says how many seconds to wait",
        503: "the queue is full, or the server is shutting down; Retry-After as above",
        504: "the translation was not ready in time",
    }.items()
}
# URL -> package, file and type of the page's parts.
PAGE = {
    "/": ("nmt.extras.serve", "page/index.html", "text/html; charset=utf-8"),
    "/page.css": ("nmt.extras.analysis", "page.css", "text/css; charset=utf-8"),
    "/page.js": ("nmt.extras.analysis", "page.js", "text/javascript; charset=utf-8"),
    "/serve.css": ("nmt.extras.serve", "page/serve.css", "text/css; charset=utf-8"),
    "/serve.js": ("nmt.extras.serve", "page/serve.js", "text/javascript; charset=utf-8"),
}
MAX_BYTES_PER_CHARACTER = 12  # "\ud83d\ude00" in JSON
MAX_OTHER_BYTES = 1 << 17  # of a request, beside its texts: the tokens of a prefix


@dataclass(frozen=True)
class Limits:
    """What the server accepts.

    Attributes:
        characters: of all texts of a request. queue: texts that may wait. batch: texts that are
            translated together.
        rate: requests per minute from one address; None is no limit. timeout: seconds until an
            answer.
    """

    characters: int = 5000
    queue: int = 256
    batch: int = 64
    rate: int | None = None
    timeout: float = 30.0


class _Api:
    """The functions that answer requests. Their docstrings are the descriptions in
    /openapi.json.
    """

    def __init__(
        self,
        runs: Sequence[ServedRun],
        limits: Limits,
        token: str | None,
        measurements: Measurements,
    ) -> None:
        self.runs, self.limits, self.token, self.measurements = (
            {run.name: run for run in runs},
            limits,
            token,
            measurements,
        )
        self.batcher = Batcher(limits.queue, limits.batch, measurements)
        measurements.queue_texts.set_function(lambda: self.batcher.n_waiting)

    async def translate(self, request: Request, body: TranslateRequest) -> JSONResponse:
        """Translate one text or several, line by line. LibreTranslate's clients can use this
        address.
        """
        self.authorize(request, body.api_key)
        run = self.find_run(body.run, body.source, body.target)
        texts = [body.q] if isinstance(body.q, str) else body.q
        lines = [text.replace("\r\n", "\n").split("\n") for text in texts]
        all_lines = tuple(line for text_lines in lines for line in text_lines)
        self.check_size(all_lines)
        n = body.alternatives + 1
        if n > run.max_translations:
            message = (
                f"alternatives: run {run.name} has at most {run.max_translations - 1}; `nmt "
                "serve --beam` sets a larger beam"
            )
            raise RefusedError(422, message)
        if body.prefix and len(all_lines) > 1:
            raise RefusedError(422, "prefix: only for a single line of text")
        task = TranslateTask(run, n, body.details)
        results = await self.compute(
            request, task, LinesRequest(all_lines, body.prefix), len(all_lines)
        )
        self.count(run, all_lines)
        best = iter([_texts(result) for result in results])
        per_text = [_join([next(best) for _ in text_lines], n) for text_lines in lines]
        single = isinstance(body.q, str)
        answer: dict[str, Any] = {
            "translatedText": per_text[0][0] if single else [joined[0] for joined in per_text]
        }
        if body.alternatives:
            answer["alternatives"] = (
                per_text[0][1:] if single else [joined[1:] for joined in per_text]
            )
        answer["run"] = run.name
        if body.details:
            answer["lines"] = results
        return JSONResponse(answer)

    async def alternatives(self, request: Request, body: AlternativesRequest) -> JSONResponse:
        """What else could follow after the first tokens of a translation, and how the translation
        would go on from there.
        """
        self.authorize(request, body.api_key)
        run = self.find_run(body.run, "auto", "auto")
        self.check_size([body.q])
        if "\n" in body.q:
            raise RefusedError(422, "q: only one line of text")
        task = AlternativesTask(run, body.alternatives)
        results = await self.compute(
            request, task, (body.q, tuple(body.tokens)), min(body.alternatives, self.limits.queue)
        )
        self.count(run, [body.q] * len(results))
        return JSONResponse({"run": run.name, "alternatives": results})

    async def list_runs(self, request: Request) -> list[Run]:
        """The runs that translate."""
        self.authorize(request)
        runs = self.runs.values()
        return [
            Run(
                name=r.name,
                source=r.src_language,
                target=r.tgt_language,
                translations=r.max_translations,
            )
            for r in runs
        ]

    async def languages(self, request: Request) -> list[Language]:
        """The languages, as LibreTranslate lists them."""
        self.authorize(request)
        targets: dict[str, list[str]] = {}
        for run in self.runs.values():
            known = targets.setdefault(run.src_language, [])
            known += [run.tgt_language] * (run.tgt_language not in known)
        return [Language(code=code, name=code, targets=codes) for code, codes in targets.items()]

    async def health(self) -> Health:
        """Whether the server answers; status 503 if it does not. Needs no token."""
        if not self.batcher.is_working:
            raise RefusedError(503, "the server is shutting down", 1)
        return Health(status="ok", version=__version__, waiting=self.batcher.n_waiting)

    async def metrics(self, request: Request) -> Response:
        """Measurements in the text format of Prometheus."""
        self.authorize(request)
        return Response(self.measurements.exposition(), media_type=CONTENT_TYPE_LATEST)

    def authorize(self, request: Request, api_key: str = "") -> None:
        """Raises: RefusedError if the server has a token, and the request does not."""
        if self.token is None:
            return
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        given = value.strip() if scheme.lower() == "bearer" else api_key
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.token.encode()):
            raise RefusedError(
                401,
                (
                    "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`, or "
                    "as "
                    "api_key"
                ),
            )

    def find_run(self, name: str | None, source: str, target: str) -> ServedRun:
        """The run with this name, or the first with these languages. Raises: RefusedError if there
        is none.
        """
        if name is not None and name not in self.runs:
            raise RefusedError(
                422, f"run: there is no {name!r}; the runs are {', '.join(self.runs)}"
            )
        for run in self.runs.values() if name is None else [self.runs[name]]:
            if source in ("auto", run.src_language) and target in ("auto", run.tgt_language):
                return run
        directions = ", ".join(
            sorted({f"{run.src_language}-{run.tgt_language}" for run in self.runs.values()})
        )
        raise RefusedError(
            422, f"source, target: no run translates {source}-{target}; there is {directions}"
        )

    def check_size(self, lines: Sequence[str]) -> None:
        """Raises: RefusedError if the texts are too long, or too many."""
        n_characters, max_lines = sum(map(len, lines)), min(MAX_TEXTS, self.limits.queue)
        if n_characters > self.limits.characters:
            raise RefusedError(
                413,
                (
                    f"{n_characters:,} characters; a request has at most "
                    f"{self.limits.characters:,}; "
                    "split it"
                ),
            )
        if len(lines) > max_lines:
            raise RefusedError(
                413, f"{len(lines):,} lines; a request has at most {max_lines}; split it"
            )

    async def compute(self, request: Request, task: Task, values: Any, n_texts: int) -> Any:
        """The result of a task, as soon as the thread that translates has it.

        Raises:
            RefusedError: the queue is full, the time is over, the client is gone, or the text
                cannot be translated.
        """
        try:
            result = asyncio.wrap_future(self.batcher.submit(task, values, n_texts))
        except QueueFullError as error:
            raise RefusedError(503, str(error), 1) from None
        gone = asyncio.ensure_future(_wait_for_disconnect(request))
        try:
            await asyncio.wait(
                (result, gone), timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if result.done():
                return result.result()
        except TooLargeError as error:
            raise RefusedError(413, error.reason) from None
        except (ConfigError, DataError) as error:
            raise RefusedError(422, str(error)) from None
        except NmtError as error:
            raise RefusedError(500, str(error)) from None
        finally:
            result.cancel()
            is_gone = gone.done()
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone
        if is_gone:
            raise RefusedError(499, "the client closed the connection")
        raise RefusedError(
            504,
            (
                f"no translation after {self.limits.timeout:g} s; the server is busy, or the text "
                "is "
                "long"
            ),
        )

    def count(self, run: ServedRun, lines: Sequence[str]) -> None:
        """Count translated lines."""
        self.measurements.texts.labels(run.name).inc(len(lines))
        self.measurements.characters.labels(run.name).inc(sum(map(len, lines)))


def create_app(
    runs: Sequence[ServedRun],
    limits: Limits,
    *,
    token: str | None = None,
    hosts: frozenset[str] | None = None,
) -> FastAPI:
    """The application.

    Args:
        runs: at least one, with different names.
        token: that requests must have; None: none.
        hosts: names that the header Host may have; None: any.
    """
    measurements = Measurements()
    api = _Api(runs, limits, token, measurements)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        api.batcher.start()
        yield
        await asyncio.to_thread(api.batcher.stop)

    app = FastAPI(
        title="nmt",
        version=__version__,
        description=__doc__ or "",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    add = app.add_api_route
    refused: dict[int | str, dict[str, Any]] = {status: ERRORS[status] for status in (401, 403)}
    busy: dict[int | str, dict[str, Any]] = {503: ERRORS[503]}
    add(
        "/translate",
        api.translate,
        methods=["POST"],
        response_model=TranslateAnswer,
        responses=ERRORS,
    )
    add(
        "/alternatives",
        api.alternatives,
        methods=["POST"],
        response_model=AlternativesAnswer,
        responses=ERRORS,
    )
    add("/runs", api.list_runs, response_model=list[Run], responses=refused)
    add("/languages", api.languages, response_model=list[Language], responses=refused)
    add("/health", api.health, response_model=Health, responses=busy)
    add("/metrics", api.metrics, response_class=PlainTextResponse, responses=refused)
    for path, (package, name, media_type) in PAGE.items():
        app.add_route(path, _file(files(package).joinpath(name).read_bytes(), media_type))
    app.add_exception_handler(RefusedError, _on_refused)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_middleware(
        Guard,
        hosts=hosts,
        rate_limit=None if limits.rate is None else RateLimit(limits.rate),
        max_body=MAX_BYTES_PER_CHARACTER * limits.characters + MAX_OTHER_BYTES,
        measurements=measurements,
        paths=[route.path for route in app.routes if isinstance(route, Route)],
    )
    return app


def _file(content: bytes, media_type: str) -> Callable[[Request], Response]:
    return lambda _request: Response(
        content, media_type=media_type, headers={"Cache-Control": "no-cache"}
    )


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _texts(result: Any) -> list[str]:
    """The translations of a line, best first; `result` of a `TranslateTask`."""
    return (
        result
        if isinstance(result, list)
        else [each["text"] for each in result["translations"]] or [""]
    )


def _join(lines: Sequence[Sequence[str]], n: int) -> list[str]:
    """The n best translations of a text, from the best translations of its lines; fewer if no line
    has n.
    """
    n_found = min(n, max(map(len, lines)))
    return ["\n".join(best[min(rank, len(best) - 1)] for best in lines) for rank in range(n_found)]


def _on_refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error.response()


def _on_invalid(_request: Request, error: Exception) -> Response:
    """One line: the first field that is wrong, and everything that is wrong with it."""
    assert isinstance(error, RequestValidationError)
    first, *_ = errors = error.errors()
    if first["type"] == "json_invalid":
        return RefusedError(400, f"the body is not JSON: {first['ctx']['error']}").response()
    if len(first["loc"]) < 2:
        return RefusedError(
            422, "the body must be a JSON object, sent as application/json"
        ).response()
    name = first["loc"][1]
    reasons = dict.fromkeys(each["msg"] for each in errors if each["loc"][1:2] == (name,))
    return RefusedError(422, f"{name}: {'; '.join(reasons)}").response()


def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    texts = {
        404: f"there is no {request.scope['path']}; /openapi.json lists all addresses",
        405: f"{request.method} is not possible here",
    }
    return RefusedError(
        error.status_code, texts.get(error.status_code, str(error.detail))
    ).response()

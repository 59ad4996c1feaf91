"""Requests to the server of `nmt serve`, in this process."""

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from scripts.fuzz.readers import translator


@cache
def application(folder: Path) -> tuple[Any, asyncio.AbstractEventLoop]:
    """The server's application, started."""
    from nmt.decoding.output import WarningChecker
    from nmt.extras.serve.answers import ServedRun
    from nmt.extras.serve.app import Limits, create_app

    run = translator(folder)
    served = ServedRun("run", "en", "de", run, WarningChecker(run.tokenizers, run.vocabularies))
    app, loop = (
        create_app([served], Limits(characters=200), hosts=frozenset({"localhost"})),
        asyncio.new_event_loop(),
    )
    loop.run_until_complete(app.router.lifespan_context(app).__aenter__())
    return app, loop


def request(content: bytes, folder: Path) -> None:
    """First line: method and address; then headers; an empty line; the body."""
    head, _, body = content.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    app, loop = application(folder)
    headers = [
        (name.strip().lower(), value.strip())
        for name, _, value in (line.partition(b":") for line in lines)
    ]
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method.decode("latin-1"),
        "path": path.decode("utf-8", "replace"),
    }
    scope |= {
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    scope |= {"asgi": {"version": "3.0"}, "scheme": "http", "root_path": ""}
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    answers: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        answers.append(message)

    loop.run_until_complete(app(scope, receive, send))
    status = answers[0]["status"]
    if status >= 400:
        json.loads(
            b"".join(answer.get("body", b"") for answer in answers[1:])
            if method != b"HEAD"
            else b"{}"
        )
    if status >= 500 and status not in (503, 504):
        raise AssertionError(f"status {status}: {answers}")


def post(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    return f"POST {path}\nhost: localhost\ncontent-type: {content_type}\n\n".encode() + body


REQUESTS = (
    post("/translate", b'{"q": "Anna sieht uns.", "alternatives": 1, "details": true}'),
    post("/translate", b'{"q": ["a", "b\\nc"], "source": "en", "target": "de"}'),
    post("/translate", b'{"q": "Anna", "prefix": "Sie", "run": "run", "api_key": ""}'),
    post("/alternatives", b'{"q": "Anna", "tokens": ["\xe2\x96\x81"], "alternatives": 2}'),
    *(
        f"GET {path}\nhost: localhost:80\norigin: http://localhost:80\n\n".encode()
        for path in ("/", "/runs", "/health?x=1")
    ),
)

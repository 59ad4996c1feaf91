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


class _Transport(asyncio.Transport):
    """Keeps what the server writes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 80)})
        self.written, self.closing = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def connect(content: bytes, folder: Path) -> None:
    """The bytes of a connection, in three parts."""
    import uvicorn
    from uvicorn.server import ServerState

    from nmt.extras.serve.protocol import MAX_HEADER_BYTES, BoundedProtocol

    app, loop = application(folder)
    config = uvicorn.Config(
        app, ws="none", log_config=None, h11_max_incomplete_event_size=MAX_HEADER_BYTES
    )
    state, transport = ServerState(), _Transport()

    async def run() -> None:
        protocol = BoundedProtocol(config, state, {}, loop)
        protocol.connection_made(transport)
        for part in (content[: len(content) // 2], content[len(content) // 2 : -1], content[-1:]):
            if part and not transport.closing:
                protocol.data_received(part)
                await asyncio.sleep(0)
        protocol.connection_lost(None)
        await asyncio.gather(*state.tasks)

    loop.run_until_complete(run())
    assert b"HTTP/1.1 500" not in transport.written, transport.written


def post(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    return f"POST {path}\nhost: localhost\ncontent-type: {content_type}\n\n".encode() + body


REQUESTS = (
    post("/translate", b'{"q": "Anna sieht uns.", "alternatives": 1, "details": true}'),
    post("/translate", b'{"q": ["a", "b\\nc"], "source": "en", "target": "de"}'),
    post("/translate", b'{"q": "Anna", "prefix": "Sie", "run": "run", "api_key": ""}'),
    post("/alternatives", b'{"q": "Anna", "tokens": ["\xe2\x96\x81"], "alternatives": 2}'),
    post("/translate", b"q=Anna&source=auto&target=de", "application/x-www-form-urlencoded"),
    *(
        f"GET {path}\nhost: localhost:80\norigin: http://localhost:80\n\n".encode()
        for path in ("/", "/runs", "/metrics?x=1")
    ),
)

CONNECTIONS = (
    b"".join(
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode() + body
        for method, path, headers, body in (
            ("GET", "/health?x=%41", "Connection: keep-alive\r\n", b""),
            (
                "POST",
                "/translate",
                "Content-Type: application/json\r\nContent-Length: 9\r\n",
                b'{"q": ""}',
            ),
            (
                "POST",
                "/translate",
                "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n",
                b'9;a=b\r\n{"q": ""}\r\n0\r\nX: y\r\n\r\n',
            ),
        )
    ),
    b"HEAD / HTTP/1.0\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n",
    b"POST /translate HTTP/1.1\nHost: localhost\nContent-Length: 7\nTransfer-Encoding: chunked\n\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
)

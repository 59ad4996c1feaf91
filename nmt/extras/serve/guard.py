"""What the server refuses before it reads a request: other hosts, other sites, large bodies."""

import asyncio
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page loads nothing from elsewhere, and no other page can show it or send forms to it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
BODY_SECONDS = 10.0  # to send the body of a request
ERROR_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}  # by status


def error_response(status: int, text: str) -> JSONResponse:
    """An error as JSON: one line."""
    return JSONResponse({"error": text}, status, ERROR_HEADERS.get(status))


class Guard:
    """ASGI middleware: checks where a request comes from, and reads its body, within limits.

    Args:
        hosts: names that the header Host may have, without port; None: any.
        max_body: bytes.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] | None, max_body: int) -> None:
        self.app, self.hosts, self.max_body = app, hosts, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        try:
            self._check_origin(Headers(scope=scope))
            if scope["method"] == "POST":
                receive = await self._read_body(receive)
        except HTTPException as error:
            response = error_response(error.status_code, error.detail)
            await response(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def _check_origin(self, headers: Headers) -> None:
        """Raises: HTTPException if the request is for another host, or from another site."""
        host, origin = headers.get("host", ""), headers.get("origin")
        name = re.sub(r":\d*$", "", host.lower()).removeprefix("[").removesuffix("]")
        if self.hosts is not None and name not in self.hosts:
            # An attacker's name server may resolve a name of a web page to this machine.
            names = ", ".join(sorted(self.hosts))
            text = f"the header Host is {host!r}; this server has only the names {names}"
            raise HTTPException(403, text)
        if origin is not None and origin.partition("://")[2] != host:
            text = f"the request comes from a page of {origin}, not of this server"
            raise HTTPException(403, text)

    async def _read_body(self, receive: Receive) -> Receive:
        """Another `receive`, which has the whole body already.

        Raises:
            HTTPException: the body is too large, or takes too long.
        """
        body, is_complete = bytearray(), False
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not is_complete:
                    message = await receive()
                    body += message.get("body", b"")
                    is_complete = not message.get("more_body", False)  # or the client is gone
                    if len(body) > self.max_body:
                        text = f"the request is larger than {self.max_body:,} bytes; split it"
                        raise HTTPException(413, text)
        except TimeoutError:
            text = f"the body of the request was not complete after {BODY_SECONDS:.0f} s"
            raise HTTPException(408, text) from None
        messages: list[Message] = [{"type": "http.request", "body": bytes(body)}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        return receive_again

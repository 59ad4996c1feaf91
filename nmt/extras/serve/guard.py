"""What the server refuses before it looks at a request: other hosts, other sites, too many
requests, too large ones.
"""

import asyncio
import ipaddress
import json
from collections import OrderedDict
from collections.abc import Iterable
from math import ceil
from time import monotonic
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.extras.serve.measurements import Measurements

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
FORM = "application/x-www-form-urlencoded"
BODY_SECONDS = 10.0  # to send the body of a request
MAX_LENGTH_DIGITS = 18  # of Content-Length
MAX_CLIENTS = 10_000  # addresses whose requests are counted


class RefusedError(Exception):
    """A request gets an error instead of an answer."""

    def __init__(self, status: int, text: str, retry_after: int | None = None) -> None:
        self.status, self.text, self.retry_after = status, text, retry_after
        super().__init__(text)

    def response(self) -> JSONResponse:
        """The error as JSON."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 400:
            headers["Connection"] = "close"  # what follows may be no request
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse({"error": self.text}, self.status, headers)


def client_of(address: tuple[str, int] | None) -> str:
    """Whose requests and connections are counted together: an IPv4 address, or the first half of an
    IPv6 address.

    One machine can have all addresses with the same first half. A header that names another client
    is not asked: any client could send it.
    """
    host = address[0] if address else ""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv4Address):
        return host
    return str(ip.ipv4_mapped) if ip.ipv4_mapped else ip.packed[:8].hex(":", 2)


class RateLimit:
    """Limits the requests of each client: a bucket holds up to one minute's requests, and fills at
    a steady rate.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # client -> requests left, at which time

    def take(self, client: str) -> None:
        """Count a request. Raises: RefusedError if the client has no request left."""
        now = monotonic()
        left, then = self._buckets.pop(client, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - then) * self.per_minute / 60)
        self._buckets[client] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = ceil((1 - left) * 60 / self.per_minute)
            raise RefusedError(
                429, f"more than {self.per_minute} requests per minute; wait {wait} s", wait
            )


class Guard:
    """ASGI middleware: checks where a request comes from, and reads its body, with a limit and in
    limited time.

    A body that is an HTML form becomes JSON, which the application reads.

    Args:
        hosts: names that the header Host may have, without port; None: any.
        paths: that are counted by name.
        max_body: bytes.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: frozenset[str] | None,
        rate_limit: RateLimit | None,
        max_body: int,
        measurements: Measurements,
        paths: Iterable[str],
    ) -> None:
        self.app, self.hosts, self.rate_limit, self.max_body = app, hosts, rate_limit, max_body
        self.measurements, self.paths = measurements, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start_time, path = monotonic(), scope["path"] if scope["path"] in self.paths else "other"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
                self.measurements.requests.labels(path, str(message["status"])).inc()
            await send(message)

        try:
            self._check(scope)
            if scope["method"] == "POST":
                scope, receive = await self._with_body(scope, receive)
        except RefusedError as error:
            await error.response()(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)
        self.measurements.request_seconds.labels(path).observe(monotonic() - start_time)

    def _check(self, scope: Scope) -> None:
        """Raises: RefusedError if the request is for another host, from another site, or one too
        many.
        """
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy may take the other one, and see another request in the body.
            raise RefusedError(
                400, "a request has either Content-Length or Transfer-Encoding, not both"
            )
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.hosts is not None and _hostname(f"//{host}") not in self.hosts:
            # A name that an attacker's name server resolves to this machine gives web pages access
            # to it.
            raise RefusedError(
                403,
                (
                    f"the header Host is {host!r}; this server has only the names "
                    f"{', '.join(sorted(self.hosts))}"
                ),
            )
        if origin is not None and _netloc(origin) != host:
            raise RefusedError(
                403, f"the request comes from a page of {origin}, not of this server"
            )
        if self.rate_limit is not None and scope["method"] == "POST":
            self.rate_limit.take(client_of(scope.get("client")))

    async def _with_body(self, scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
        """The request with its body read already. Raises: RefusedError if it is too large, or takes
        too long.
        """
        headers = Headers(scope=scope)
        try:
            body = await asyncio.wait_for(self._read(headers, receive), BODY_SECONDS)
        except TimeoutError:
            raise RefusedError(
                408, f"the body of the request was not complete after {BODY_SECONDS:.0f} s"
            ) from None
        if headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
            fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
            body = json.dumps(
                {name: values if len(values) > 1 else values[0] for name, values in fields.items()}
            ).encode()
            scope = {
                **scope,
                "headers": [
                    pair
                    for pair in scope["headers"]
                    if pair[0] not in (b"content-type", b"content-length")
                ],
            }
            scope["headers"] += [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ]
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        return scope, receive_again

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        too_large = RefusedError(
            413, f"the request is larger than {self.max_body:,} bytes; split it"
        )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > MAX_LENGTH_DIGITS or int(length) > self.max_body:
            raise too_large
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RefusedError(
                    400,
                    "the client closed the connection before the body of the request was complete",
                )
            body += message.get("body", b"")
            if len(body) > self.max_body:
                raise too_large
            if not message.get("more_body", False):
                return bytes(body)


def _netloc(url: str) -> str | None:
    """Host and port; None if the URL is malformed."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return None


def _hostname(url: str) -> str | None:
    """In lower case, without port; None if there is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:  # such as a bracket that is not closed
        return None

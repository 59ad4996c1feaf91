"""What every request passes first: its origin and size are checked, and forms become JSON. Errors
become one line.
"""

import asyncio
import base64
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.errors import ConfigError, DataError, NmtError, TooLargeError
from nmt.extras.serve.answers import DEFECT, QueueFullError

SECURITY_HEADERS = {
    # The page loads nothing from elsewhere, and no other page can show it or send forms to it.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
OTHER_SITES = ("cross-site", "same-site")
MAX_FIELDS = 1000  # of a form; as many as the library reads of one with files
# Some others, such as Punycode, take very long for long texts.
CHARSET = re.compile(r"(?i)charset=[\"']?((?:utf|iso|windows|cp|koi8|gb|big5|euc|shift)[\w-]*)")
DEEPL = ("/v2/", "/v3/")  # where its API is
DEEPL_ERRORS = {
    (404, "Not Found"): "there is no such address; this server only translates",
    (405, "Method Not Allowed"): (
        "this server only translates; to change a glossary, delete it and make a new one"
    ),
}
BODY_SECONDS = 10.0  # to send the body of a request
ERROR_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}  # by status


def on_error(request: Request, error: Exception) -> Response:
    """Any error as a status and one line, in the JSON that the clients of its address read."""
    status, text = explained(error)
    content: dict[str, Any] = {"error": text}
    if (request.method, request.scope["path"]) == ("GET", "/translate"):
        content = {"responseData": None, "responseDetails": text, "responseStatus": status}
    elif request.scope["path"].startswith(DEEPL):
        status = {401: 403, 422: 400}.get(status, status)
        content = {"message": DEEPL_ERRORS.get((status, text), text)}
    return JSONResponse(content, status, ERROR_HEADERS.get(status))


def explained(error: Exception) -> tuple[int, str]:
    """The status of an error, and one line."""
    match error:
        case HTTPException():
            return error.status_code, error.detail
        case RequestValidationError():
            return _wrong_field(error)
        case TooLargeError():
            return 413, error.reason
        case QueueFullError():
            return 503, str(error)
        case NmtError():
            return 422 if isinstance(error, ConfigError | DataError) else 500, str(error)
    return 500, DEFECT


def _wrong_field(error: RequestValidationError) -> tuple[int, str]:
    """The status, and everything that is wrong with the first field that is."""
    first, *_ = errors = error.errors()
    if first["type"] == "json_invalid":
        return 400, f"the body is not JSON: {first['ctx']['error']}"
    if len(first["loc"]) < 2:
        return 422, "the body must be a JSON object, sent as application/json"
    name = first["loc"][1]
    reasons = dict.fromkeys(each["msg"] for each in errors if each["loc"][1:2] == (name,))
    return 422, f"{name}: {'; '.join(reasons)}"


class Guard:
    """ASGI middleware: checks where a request comes from, and reads its body, within limits. The
    application sees JSON where a client has sent a form.

    Args:
        hosts: names that the header Host may have, without port; None: any.
        max_body: from a path to bytes.
        is_open: whether pages of other sites may link to a path.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: frozenset[str] | None,
        max_body: Callable[[str], int],
        is_open: Callable[[str], bool],
    ) -> None:
        self.app, self.hosts, self.max_body, self.is_open = app, hosts, max_body, is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        try:
            headers = Headers(scope=scope)
            self._check_origin(headers, scope["path"])
            is_post = scope["method"] == "POST"
            is_form = headers.get("content-type", FORMS[0] if is_post else "").startswith(FORMS)
            body = await self._read_body(receive, self.max_body(scope["path"]))
            if is_form and not body.lstrip().startswith(b"{"):  # curl calls JSON a form
                fields = await form_fields(Request(scope, _received(body, receive)), len(body))
                if is_post:
                    body = json.dumps(fields).encode()
                    MutableHeaders(scope=scope)["content-type"] = "application/json"
                else:  # libretranslatepy asks for the languages with a form
                    scope["query_string"] = urlencode(fields, doseq=True).encode()
                    body = b""
            receive = _received(body, receive)
        except HTTPException as error:
            await on_error(Request(scope), error)(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def _check_origin(self, headers: Headers, path: str) -> None:
        """Raises: HTTPException if a request is for another host, or from another site's page."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        name = re.sub(r":\d*$", "", host.lower()).removeprefix("[").removesuffix("]")
        if self.hosts is not None and name not in self.hosts:
            # An attacker's name server may resolve a name of a web page to this machine.
            names = ", ".join(sorted(self.hosts))
            raise HTTPException(
                403, f"the header Host is {host!r}; this server has only the names {names}"
            )
        if origin is not None and origin.partition("://")[2] != host:
            raise HTTPException(
                403, f"the request comes from a page of {origin}, not of this server"
            )
        # An image on any page can ask without an Origin.
        if headers.get("sec-fetch-site") in OTHER_SITES and not self.is_open(path):
            raise HTTPException(403, "the request comes from a page of another site")

    async def _read_body(self, receive: Receive, limit: int) -> bytes:
        """Raises: HTTPException if the body is too large, or takes too long."""
        body, is_complete = bytearray(), False
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not is_complete:
                    message = await receive()
                    body += message.get("body", b"")
                    is_complete = not message.get("more_body", False)  # or the client is gone
                    if len(body) > limit:
                        raise HTTPException(
                            413, f"the request is larger than {limit:,} bytes; split it"
                        )
        except TimeoutError:
            raise HTTPException(
                408, f"the body of the request was not complete after {BODY_SECONDS:.0f} s"
            ) from None
        return bytes(body)


def _received(body: bytes, receive: Receive) -> Receive:
    """Another `receive`, which has the whole body already."""
    messages: list[Message] = [{"type": "http.request", "body": body}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


async def form_fields(request: Request, max_bytes: int) -> dict[str, Any]:
    """The fields of a query and a form; a list if there are several of a name.

    A file is in base64, and its own name in the field `name`.

    Raises:
        HTTPException: it is no form, or neither in UTF-8 nor in the charset of its Content-Type.
    """
    kind = request.headers.get("content-type", FORMS[0])
    declared = CHARSET.search(kind)
    charset = declared[1] if declared else "utf-8"
    values: dict[str, list[str]] = {}
    try:
        pairs = _pairs(request.scope["query_string"])
        if kind.startswith(FORMS[0]):
            pairs += _pairs(await request.body())
        else:
            headers = Headers({"content-type": f"{kind}; charset=latin-1"})
            parser = MultiPartParser(headers, request.stream(), max_part_size=max_bytes)
            pairs += (await parser.parse()).multi_items()
        for name, value in pairs:
            text = value
            if isinstance(value, UploadFile):
                values["name"] = [_decoded(value.filename or "", charset)]
                text = base64.b64encode(await value.read()).decode()
                await value.close()
            values.setdefault(_decoded(name, charset), []).append(_decoded(text, charset))
    except MultiPartException as error:
        raise HTTPException(400, error.message) from None
    except (ValueError, LookupError) as error:
        raise HTTPException(
            400, f"the form cannot be read as {charset[:40]} ({error}); send UTF-8"
        ) from None
    return {name: each if len(each) > 1 else each[0] for name, each in values.items()}


def _pairs(form: bytes) -> list[tuple[str, Any]]:
    """The names and values of a form or query without percent codes; a character for each byte."""
    return [*parse_qsl(form.decode("latin-1"), True, encoding="latin-1", max_num_fields=MAX_FIELDS)]


def _decoded(characters: str, charset: str) -> str:
    """From a character for each byte. Raises: ValueError: the bytes are not in this charset."""
    return characters.encode("latin-1").decode(charset)

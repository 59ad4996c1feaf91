"""HTTP connections whose number and time are limited. Without this, slow clients could hold all
connections forever.
"""

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.extras.serve.guard import client_of

MAX_CONNECTIONS = 500  # at a time; the usual limit of open files is 1024
MAX_CLIENT_CONNECTIONS = 250  # of one address
MAX_HEADER_BYTES = 1 << 14  # of the first line and all headers of a request
HEADER_SECONDS = 10.0  # to send them, from the connection or from the last answer on
CLOSE_SECONDS = 10.0  # to take the rest of an answer after which the connection ends


class BoundedProtocol(H11Protocol):
    """One connection of uvicorn. It is cut when a request or its answer takes too long.

    Attributes:
        exchange_seconds: from the end of a request's headers to the end of its answer.
        client_name: of whom the connection is, as `client_of` says.
    """

    exchange_seconds = 60.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self.client_name = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline(HEADER_SECONDS)
        self.client_name = client_of(self.client)
        same = [
            one
            for one in self.connections
            if isinstance(one, BoundedProtocol) and one.client_name == self.client_name
        ]
        if len(same) > MAX_CLIENT_CONNECTIONS:
            self._refuse(
                429,
                f"more than {MAX_CLIENT_CONNECTIONS} connections from one address; wait 1 s",
                retry_after=1,
            )
            self.connections.discard(
                self
            )  # it takes no place from other addresses, not even until it ends
        elif len(self.connections) > MAX_CONNECTIONS:
            self._refuse(503, "too many connections; wait 1 s", retry_after=1)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        waited = self._waits_for_request
        super().data_received(data)
        if waited and not self._waits_for_request:
            self._set_deadline(self.exchange_seconds)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._set_deadline(CLOSE_SECONDS)
        else:  # the next request may have come already
            self._set_deadline(HEADER_SECONDS if self._waits_for_request else self.exchange_seconds)

    def send_400_response(self, msg: str) -> None:
        """Called when a request is not HTTP, or has too large headers."""
        self._refuse(
            400, f"{msg.rstrip('.')}; a request has at most {MAX_HEADER_BYTES:,} bytes of headers"
        )

    @property
    def _waits_for_request(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def _refuse(self, status: int, text: str, retry_after: int | None = None) -> None:
        """End the connection with an error, or at once if an answer has begun."""
        if (
            self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE, h11.ERROR)
            or self.transport.is_closing()
        ):
            self.transport.abort()
            return
        body = json.dumps({"error": text}).encode()
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        lines = [
            f"HTTP/1.1 {status} ",
            *(f"{name}: {value}" for name, value in headers.items()),
            "",
            "",
        ]
        self.transport.write("\r\n".join(lines).encode() + body)
        self._set_deadline(CLOSE_SECONDS)
        self.transport.close()

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = (
            None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
        )

"""`nmt serve`: a real process, many clients at once, its end; and what it refuses to start with."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from nmt.extras.serve.command import is_loopback, load_runs, open_socket
from nmt.extras.serve.schemas import Run as RunInfo
from nmt.extras.share.bundle import write_bundle
from nmt.run.load import find_run_and_checkpoint, load_translator
from tests import toy
from tests.conftest import Run

SECONDS = 60
N_CLIENTS = 200
NEEDS_TOKEN = (
    "other machines can reach this address, so it needs a token: set NMT_TOKEN, for example"
)
LONG = ("--token", "x" * 16)


@contextmanager
def server(*words: object) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server and its port. It is killed at the end, if it still runs."""
    command = [sys.executable, "-m", "nmt", "serve", "--port", "0", *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            ready = re.fullmatch(
                r"nmt serves run \(en-de\) at http://127\.0\.0\.1:(\d+)/ until Ctrl-C\n", line
            )
            assert ready is not None, line + process.communicate(timeout=SECONDS)[1]
            address = f"http://127.0.0.1:{ready[1]}"
            others = f"for other programs: {address}, or {address}/v2/translate\n"
            assert process.stdout.readline() == others
            yield process, int(ready[1])
        finally:
            process.kill()


def ask(port: int, path: str, **fields: Any) -> tuple[int, dict[str, Any]]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
        method, headers = "POST" if fields else "GET", {"content-type": "application/json"}
        connection.request(method, path, json.dumps(fields), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGTERM")
def test_many_clients_at_once_get_their_own_answers(folder: Path) -> None:
    """All start together; each answer is the translation of its sentence alone. Then the server
    ends with status 0.
    """
    sources = [source for source, _ in toy.sentence_pairs()[:N_CLIENTS]]
    translator = load_translator(folder / "run")
    expected = [translator.translate([source])[0].text for source in sources]
    assert len(set(expected)) > N_CLIENTS / 4
    with server(folder / "run") as (process, port):
        barrier = threading.Barrier(N_CLIENTS)

        def translate(source: str) -> tuple[int, dict[str, Any]]:
            barrier.wait(SECONDS)
            return ask(port, "/translate", q=source)

        with ThreadPoolExecutor(N_CLIENTS) as pool:
            answers = [*pool.map(translate, sources)]
        assert {status for status, _ in answers} == {200}
        assert [answer["translatedText"] for _, answer in answers] == expected
        process.send_signal(signal.SIGTERM)
        assert (process.communicate(timeout=SECONDS)[1], process.returncode) == ("", 0)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGTERM")
def test_sigterm_answers_what_was_accepted_and_refuses_the_rest(folder: Path) -> None:
    lines = [source for source, _ in toy.sentence_pairs()[:100]]
    with server(folder / "run", "--beam", 40) as (process, port), ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(ask, port, "/translate", q=lines[:32]) for _ in range(6)]
        # Until the first request is being answered, and the others wait.
        while ask(port, "/health")[1]["waiting"] < 64:
            assert not any(future.done() for future in waiting)
        process.send_signal(signal.SIGTERM)
        assert [future.result(SECONDS)[0] for future in waiting] == [200] * 6
        assert process.wait(SECONDS) == 0
        with pytest.raises(ConnectionError):
            ask(port, "/translate", q="The dog sees the tree.")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--host", "0.0.0.0"], f"--host 0.0.0.0: {NEEDS_TOKEN}"),
        (["--host", "::"], f"--host ::: {NEEDS_TOKEN}"),
        (["--host", "nmt"], f"--host nmt: {NEEDS_TOKEN}"),
        (["--host", "192.0.2.1", *LONG], "cannot serve at 192.0.2.1, port 8000 ("),
        (
            ["--host", "no.such.host.invalid", "--port", "0", *LONG],
            "cannot serve at no.such.host.invalid, port 0 (",
        ),
        (
            ["--port", "0", "--set", "training.epochs=3"],
            "--set training.epochs=3: for a trained run only decoding.KEY=VALUE can be set\n",
        ),
        (["--port", "0", "no"], "no: no run here; `nmt train -c CONFIG -o no` creates one\n"),
    ],
)
def test_what_it_refuses_to_start_with(
    nmt: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], problem: str
) -> None:
    monkeypatch.delenv("NMT_TOKEN", raising=False)
    monkeypatch.chdir(folder)
    nmt.refuses(f"nmt: {problem}", "serve", "run", *words)


def test_a_token_has_some_length(nmt: Run) -> None:
    text = "the token has 5 characters; use at least 16"
    nmt.refuses(text, "serve", "--token", "short", status=2)


def test_a_bundle_is_served_by_its_name(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "toy.v2.nmt"
    write_bundle(*find_run_and_checkpoint(folder / "run"), path)
    (run,) = load_runs([path], device="cpu", overrides=["decoding.beam=3"])
    assert run.info == RunInfo(name="toy.v2", source="en", target="de", translations=3)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


def test_a_port_that_is_taken(nmt: Run) -> None:
    with open_socket("127.0.0.1", 0) as other:
        port = other.getsockname()[1]
        text = (
            rf"nmt: cannot serve at 127\.0\.0\.1, port {port} \(Address already in use.*\); choose"
        )
        assert re.match(text, nmt("serve", "--port", port).err)

"""Load `nmt serve` with many clients at once: requests per second, latencies, memory, and whether
every answer is right.

    python scripts/load_serve.py RUN --clients 200 --requests 2000
    python scripts/load_serve.py RUN --file sentences.txt --set decoding.precision=int8

Each client sends one sentence after the other. First each sentence is translated alone; under load
each answer must be the same.
"""

import argparse
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

SAMPLE = Path(__file__).resolve().parent.parent / "data" / "sample"
SECONDS = 300


@dataclass
class Results:
    """Of all clients."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    n_wrong: int = 0


@contextmanager
def server(run: Path, options: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of the run, and its port."""
    command = [sys.executable, "-m", "nmt", "serve", str(run), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = re.search(r":(\d+)/", process.stdout.readline())
            if ready is None:
                sys.exit(1)  # the server has said why
            yield process, int(ready[1])
        finally:
            process.kill()


class Client:
    """A connection that stays open."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def translate(self, text: str) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        self._connection.request(
            "POST", "/translate", json.dumps({"q": text}), {"Content-Type": "application/json"}
        )
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def measurement(self, name: str) -> float:
        """A number from /metrics."""
        self._connection.request("GET", "/metrics")
        with self._connection.getresponse() as response:
            match = re.search(rf"^{name} (\S+)$", response.read().decode(), re.MULTILINE)
        return float(match[1]) if match else float("nan")


def load(
    port: int, sentences: Sequence[str], expected: Sequence[str], n_clients: int, n_requests: int
) -> tuple[Results, float]:
    """Let all clients start together; the results, and the seconds until the last answer."""
    results, lock, numbers = Results(), threading.Lock(), iter(range(n_requests))
    barrier = threading.Barrier(n_clients + 1)

    def work() -> None:
        with closing(Client(port)) as client:
            barrier.wait()
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                index = number % len(sentences)
                start_time = time.perf_counter()
                status, answer = client.translate(sentences[index])
                with lock:
                    results.seconds.append(time.perf_counter() - start_time)
                    results.statuses[status] += 1
                    results.n_wrong += status != 200 or answer["translatedText"] != expected[index]

    threads = [threading.Thread(target=work) for _ in range(n_clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    start_time = time.perf_counter()
    for thread in threads:
        thread.join()
    return results, time.perf_counter() - start_time


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2000, help="of all clients together")
    parser.add_argument(
        "--file", type=Path, help="sentences, one per line; default: those of the built-in sample"
    )
    parser.add_argument("--sentences", type=int, default=200, help="how many different ones")
    parser.add_argument(
        "--set", action="append", default=[], help="decoding.KEY=VALUE for the server"
    )
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the server too
    if arguments.file is not None:
        lines = arguments.file.read_text(encoding="utf-8").splitlines()
    else:
        table = next(SAMPLE.glob("*.tsv")).read_text(encoding="utf-8")
        lines = [line.split("\t")[0] for line in table.splitlines()]
    sentences = [line for line in dict.fromkeys(lines) if line.strip()][: arguments.sentences]
    with server(
        arguments.run, [word for setting in arguments.set for word in ("--set", setting)]
    ) as (process, port):
        with closing(Client(port)) as client:
            start_time = time.perf_counter()
            expected = [client.translate(sentence)[1]["translatedText"] for sentence in sentences]
            alone = (time.perf_counter() - start_time) / len(sentences)
            memory, batches = (
                client.measurement("process_resident_memory_bytes"),
                client.measurement("nmt_batch_requests_count"),
            )
        results, seconds = load(port, sentences, expected, arguments.clients, arguments.requests)
        with closing(Client(port)) as client:
            batches = client.measurement("nmt_batch_requests_count") - batches
            after = client.measurement("process_resident_memory_bytes")
        process.send_signal(signal.SIGTERM)
        status = process.wait(SECONDS)
    median, *_ = percentiles = [
        quantiles(results.seconds, n=100)[percent - 1] for percent in (50, 95, 99)
    ]
    answered = ", ".join(f"{number} x {code}" for code, number in sorted(results.statuses.items()))
    print(f"one client            {1 / alone:.0f} requests/s, {alone * 1000:.0f} ms each")
    print(f"{arguments.clients:<5} clients         {len(results.seconds) / seconds:.0f} requests/s")
    print(
        f"latency               median {median:.2f} s, 95 % {percentiles[1]:.2f} s, 99 % "
        f"{percentiles[2]:.2f} s"
    )
    print(f"requests per batch    {len(results.seconds) / max(batches, 1):.1f}")
    print(f"memory                {memory / 1e6:.0f} MB before, {after / 1e6:.0f} MB after")
    print(
        f"statuses              {answered}; {results.n_wrong} answers are not those of the "
        "sentence alone"
    )
    print(f"exit status           {status} after SIGTERM")
    if results.n_wrong or sum(results.statuses.values()) != arguments.requests or status:
        sys.exit(1)


if __name__ == "__main__":
    main()

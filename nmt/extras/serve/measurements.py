"""What the server counts, for Prometheus."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Measurements:
    """The measurements of one server. `queue_texts` is set by the caller."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self.requests = Counter(
            "nmt_requests", "Answered requests", ["path", "status"], registry=self._registry
        )
        self.request_seconds = Histogram(
            "nmt_request_seconds",
            "Time from a request to its answer",
            ["path"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self.texts = Counter("nmt_texts", "Translated lines", ["run"], registry=self._registry)
        self.characters = Counter(
            "nmt_characters", "Characters of translated lines", ["run"], registry=self._registry
        )
        self.batch_requests = Histogram(
            "nmt_batch_requests",
            "Requests that were answered together",
            buckets=TEXTS,
            registry=self._registry,
        )
        self.batch_seconds = Histogram(
            "nmt_batch_seconds",
            "Time to answer requests together",
            buckets=SECONDS,
            registry=self._registry,
        )
        self.queue_texts = Gauge("nmt_queue_texts", "Texts that wait", registry=self._registry)

    def exposition(self) -> bytes:
        """All measurements in the text format of Prometheus."""
        return generate_latest(self._registry)

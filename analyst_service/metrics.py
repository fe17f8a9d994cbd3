"""Figures for Prometheus: of this process, and of the database it shares.

No label names a session, a party or a credential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_STEP_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600)


class Metrics:
    """All figures of one service process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "coterie_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.refusals = Counter(
            "coterie_refusals",
            "Refused requests by problem.",
            ["problem"],
            registry=self.registry,
        )
        self.received = Counter(
            "coterie_received_bytes", "Bytes of bodies in.", registry=self.registry
        )
        self.sent = Counter(
            "coterie_sent_bytes", "Bytes of bodies out.", registry=self.registry
        )
        self.notices = Counter(
            "coterie_notices",
            "Attempts to tell somebody, by way and outcome.",
            ["way", "outcome"],
            registry=self.registry,
        )
        self.step_seconds = Histogram(
            "coterie_step_seconds",
            "Seconds from taking a step to storing what follows.",
            ["outcome"],
            buckets=_STEP_BUCKETS,
            registry=self.registry,
        )
        for outcome in ("Failed", "Crashed"):  # from 0: a first one is an increase
            self.step_seconds.labels(outcome)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self.registry)


class Readiness(Collector):
    """Whether requests should be sent here, as `/readyz` says."""

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self._is_ready = is_ready

    def collect(self) -> Iterable[Metric]:
        """Yield the figure."""
        yield GaugeMetricFamily(
            "coterie_ready", "1 while the analyst is ready.", float(self._is_ready())
        )


class FreeSpace(Collector):
    """Room for blobs; asks the file system when it is scraped."""

    def __init__(self, free_bytes: Callable[[], int]) -> None:
        self._free_bytes = free_bytes

    def collect(self) -> Iterable[Metric]:
        """Yield the figure."""
        yield GaugeMetricFamily(
            "coterie_free_bytes", "Room left for blobs.", self._free_bytes()
        )


class SessionGauges(Collector):
    """Number of sessions by state; asks the database when it is scraped."""

    def __init__(self, count: Callable[[], tuple[Mapping[str, int], int]]) -> None:
        self._count = count

    def collect(self) -> Iterable[Metric]:
        """Yield the figures."""
        states, waiting = self._count()
        sessions = GaugeMetricFamily(
            "coterie_sessions", "Sessions by state.", labels=["state"]
        )
        for state, number in states.items():
            sessions.add_metric([state], number)
        yield sessions
        yield GaugeMetricFamily(
            "coterie_rounds_waiting", "Open rounds that wait for parties.", waiting
        )

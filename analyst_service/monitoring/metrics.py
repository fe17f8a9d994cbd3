"""Figures for Prometheus: of this process, and of the database it shares.

No label names a session, a party or a credential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from analyst_service.clock import Clock

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
            "Attempts to send mail, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self.step_seconds = Histogram(
            "coterie_step_seconds",
            "Seconds from taking a step to storing what follows.",
            ["outcome"],
            buckets=_STEP_BUCKETS,
            registry=self.registry,
        )
        # from 0: a first one is an increase
        for outcome in ("Failed", "Crashed"):
            self.step_seconds.labels(outcome)
        self.notices.labels("given-up")

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


class CertificateDays(Collector):
    """How long the certificate is valid still that parties are shown."""

    def __init__(self, ends: Callable[[], datetime | None], clock: Clock) -> None:
        self._ends, self._clock = ends, clock

    def collect(self) -> Iterable[Metric]:
        """Yield the figure; nothing where no certificate can be read."""
        ends = self._ends()
        if ends is not None:
            yield GaugeMetricFamily(
                "coterie_certificate_days",
                "Days until the certificate ends that parties are shown.",
                (ends - self._clock.now()) / timedelta(days=1),
            )


class LastBackup(Collector):
    """When the last backup ended that was made over this data folder.

    mark: the file that 'coterie backup' touches.
    """

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def collect(self) -> Iterable[Metric]:
        """Yield the figure; 0 where there was none."""
        at = self._mark.stat().st_mtime if self._mark.exists() else 0.0
        yield GaugeMetricFamily(
            "coterie_last_backup_timestamp_seconds",
            "When the last 'coterie backup' ended (POSIX); 0 for never.",
            at,
        )


class LongestWaits(Collector):
    """For how long a session has stood still; asks the database when it is scraped."""

    def __init__(self, seconds: Callable[[], Mapping[str, float]]) -> None:
        self._seconds = seconds

    def collect(self) -> Iterable[Metric]:
        """Yield the figures."""
        waits = GaugeMetricFamily(
            "coterie_longest_wait_seconds",
            "Seconds since the session moved that has stood longest in a state.",
            labels=["state"],
        )
        for state, seconds in self._seconds().items():
            waits.add_metric([state], seconds)
        yield waits


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


# When the certificate ends that parties are shown

SOON: Final = timedelta(days=14)
"""How long before its end a certificate should have been renewed."""


def end_of(path: Path) -> datetime:
    """Return when the certificate in a PEM file ends; of a chain, the first that does.

    Raises OSError, ValueError if the file cannot be read, or holds no certificate.
    """
    chain = x509.load_pem_x509_certificates(path.read_bytes())
    return min(each.not_valid_after_utc for each in chain)


def end_if_readable(path: Path | None) -> datetime | None:
    """Return the same; None without a file, or where it cannot be read."""
    try:
        return None if path is None else end_of(path)
    except (OSError, ValueError):
        return None


def describe_expiry(path: Path, ends: datetime, now: datetime) -> str:
    """Return what to say of a certificate that has ended or will soon; empty else."""
    if ends > now + SOON:
        return ""
    verb = "ended" if ends <= now else "ends"
    return (
        f"the certificate in {path} {verb} on {ends:%Y-%m-%d %H:%M} UTC; parties refuse it "
        "from then on. Renew it, and start again what shows it."
    )

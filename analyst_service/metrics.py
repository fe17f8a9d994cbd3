"""Prometheus metrics of this process and of the database that it shares.

No label names a session, a party or a credential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_STEP_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600)


class Metrics:
    """All metrics of one service process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        self.requests = counter(
            "coterie_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
        )
        self.refusals = counter(
            "coterie_refusals", "Refused requests by problem.", ["problem"]
        )
        self.received = counter("coterie_received_bytes", "Bytes of request bodies.")
        self.sent = counter("coterie_sent_bytes", "Bytes of response bodies.")
        self.notices = counter(
            "coterie_notices", "Attempts to send mail, by outcome.", ["outcome"]
        )
        self.step_seconds = Histogram(
            "coterie_step_seconds",
            "Seconds from taking a step to storing its outcome.",
            ["outcome"],
            buckets=_STEP_BUCKETS,
            registry=self.registry,
        )
        # present from the start as 0, so that the first failure is an increase
        for outcome in ("Failed", "Crashed"):
            self.step_seconds.labels(outcome)
        self.notices.labels("given-up")

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


Figure = float | Mapping[str, float] | None
"""A number, or numbers by state; None leaves the gauge out."""


class Gauges(Collector):
    """Gauges whose values are looked up at each scrape.

    gauges: by name, a description and the function that looks the value up.
    """

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], Figure]]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """Yield the gauges."""
        for name, (description, look_up) in self._gauges.items():
            figure = look_up()
            if isinstance(figure, Mapping):
                gauge = GaugeMetricFamily(name, description, labels=["state"])
                for state, value in figure.items():
                    gauge.add_metric([state], value)
                yield gauge
            elif figure is not None:
                yield GaugeMetricFamily(name, description, figure)


# The expiry of the certificate that parties see

SOON: Final = timedelta(days=14)
"""How long before its expiry a certificate should have been renewed."""


def expiry_of(path: Path) -> datetime:
    """Return the earliest expiry of the certificates in a PEM file.

    Raises OSError, ValueError if the file cannot be read or holds no certificate.
    """
    chain = x509.load_pem_x509_certificates(path.read_bytes())
    return min(certificate.not_valid_after_utc for certificate in chain)


def describe_expiry(path: Path, ends: datetime, now: datetime) -> str:
    """Return a warning if a certificate has expired or will soon, else an empty text."""
    if ends > now + SOON:
        return ""
    verb = "ended" if ends <= now else "ends"
    return (
        f"the certificate in {path} {verb} on {ends:%Y-%m-%d %H:%M} UTC; parties refuse it "
        "from then on. Renew it, and restart the server that uses it."
    )

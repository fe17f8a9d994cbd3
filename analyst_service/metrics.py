"""Prometheus metrics of this process and of its database.

No label identifies a session, a party or a credential.
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
    """The Prometheus metrics of one service process."""

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
        # Create these series at 0, so that the first failure counts as an increase.
        for outcome in ("Failed", "Crashed"):
            self.step_seconds.labels(outcome)
        self.notices.labels("given-up")

    def render_text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)


Figure = float | Mapping[str, float] | None
"""A single value, or one value per state. A gauge whose value is None is omitted."""


class GaugeCollector(Collector):
    """Gauges whose values are looked up whenever the metrics are scraped.

    gauges: by metric name, a description and the function that returns the value.
    """

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], Figure]]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """Yield the gauges with their current values."""
        for name, (description, look_up) in self._gauges.items():
            figure = look_up()
            if isinstance(figure, Mapping):
                gauge = GaugeMetricFamily(name, description, labels=["state"])
                for state, value in figure.items():
                    gauge.add_metric([state], value)
                yield gauge
            elif figure is not None:
                yield GaugeMetricFamily(name, description, figure)


# The expiry of the certificate that is presented to parties

SOON: Final = timedelta(days=14)
"""How long before its expiry a certificate should be renewed at the latest."""


def read_expiry(path: Path) -> datetime:
    """Return the earliest expiry time of the certificates in a PEM file.

    Raises OSError if the file cannot be read, ValueError if it contains no certificate.
    """
    chain = x509.load_pem_x509_certificates(path.read_bytes())
    return min(certificate.not_valid_after_utc for certificate in chain)


def expiry_warning(path: Path, ends: datetime, now: datetime) -> str:
    """Return a warning if a certificate has expired or soon will, otherwise ''."""
    if ends > now + SOON:
        return ""
    verb = "ended" if ends <= now else "ends"
    return (
        f"the certificate in {path} {verb} on {ends:%Y-%m-%d %H:%M} UTC; parties refuse it "
        "from then on. Renew it, and restart the server that uses it."
    )

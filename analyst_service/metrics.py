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


Found = float | Mapping[str, float] | None


class Gauges(Collector):
    """Figures that are looked up when they are scraped.

    figures: by name, what each is, and how it is looked up: one number, numbers by
        state, or None for no figure.
    """

    def __init__(self, figures: Mapping[str, tuple[str, Callable[[], Found]]]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """Yield the figures."""
        for name, (description, look_up) in self._figures.items():
            found = look_up()
            if isinstance(found, Mapping):
                gauge = GaugeMetricFamily(name, description, labels=["state"])
                for state, value in found.items():
                    gauge.add_metric([state], value)
                yield gauge
            elif found is not None:
                yield GaugeMetricFamily(name, description, found)


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

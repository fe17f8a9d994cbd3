"""The parts of a service process: what requests and background threads share.

No web library is imported here: the driver and the sweeper run without any.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from analyst_service.blobs.files import FileBlobStore
from analyst_service.clock import Clock
from analyst_service.database import Database
from analyst_service.identity import load_identity
from analyst_service.metrics import Metrics
from analyst_service.rate_limit import Rates
from analyst_service.recent import Recent
from analyst_service.settings import Settings
from analyst_service.wakeups import Notifier
from clustering_protocols.errors import InvalidParameters, Unavailable
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import Identities


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The parts that live as long as the process."""

    settings: Settings
    clock: Clock
    database: Database
    blobs: FileBlobStore
    metrics: Metrics
    notifier: Notifier = field(default_factory=Notifier)
    institution: Institution = field(init=False, repr=False)
    rates: Rates = field(init=False)
    ready: Recent[None] = field(init=False)
    figures: Recent[bytes] = field(init=False)

    def __post_init__(self) -> None:
        each, burst = self.settings.requests_per_second, self.settings.request_burst
        institution = load_identity(self.settings.identity_path)
        object.__setattr__(self, "institution", institution)
        object.__setattr__(self, "rates", Rates(each, burst))
        object.__setattr__(self, "ready", Recent(self._check_ready))
        object.__setattr__(self, "figures", Recent(self.metrics.text))

    def require_offered(self, protocol: str) -> None:
        """Raise :class:`InvalidParameters` for a protocol that is hidden here."""
        if not self.settings.offers(protocol):
            raise InvalidParameters(f"The protocol {protocol!r} is not offered here.")

    def require_own(self, identities: Identities) -> None:
        """Raise :class:`InvalidParameters` for terms that name another analyst."""
        if identities.analyst not in {None, self.institution.key}:
            raise InvalidParameters(
                "These terms name another analyst: GET /v1/identity tells the key here."
            )

    def _check_ready(self) -> None:
        if not self.database.is_current():
            raise Unavailable("The database has the schema of another release.")
        self.blobs.draft().discard()
        if self.blobs.free_bytes() < self.settings.least_free_bytes:
            raise Unavailable("The data folder has hardly any room left.")

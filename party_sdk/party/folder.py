"""What a party keeps on its own disk: one folder per session and slot.

``identity.json`` says who the party is in this session (entropy, invitation, token);
``agreement.json`` holds the exact bytes; ``answered.0.arrays`` or ``answered.1.arrays``
where the party stands (see :mod:`party_sdk.party.durable_state`): the memory before and
after the last round that was answered, the bytes of that answer, which tasks were
answered, and what everybody was told by then. It is written and synced before the first
byte leaves, so that a retry sends the same. ``arrived.arrays`` names the rows of the
table that the session sees, unless it is all of them as they are. ``mapping-1.toml`` …
say how the table is mended (:mod:`party_sdk.party.kept_mappings`). ``moments.arrays``
and ``variables.arrays`` hold moments and ranges of the own rows: new rows are compared
with them. ``held`` is there after the operator has refused an answer, ``told-stop`` once
the analyst was told that the party stopped for good.
``consents.json`` says to which kinds of contribution they said yes. ``sent.log`` says
what left when, and what the analyst acknowledged. It and the agreement outlive the rest
in ``forgotten/1``, ``2`` …, with ``report.json``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from clustering_protocols.common.errors import InvalidParameters, NotReady
from clustering_protocols.common.validation_messages import did_you_mean
from clustering_protocols.engine import Journal
from clustering_protocols.shared_stages.row_selection import AdmittedRows
from clustering_protocols.shared_stages.statistics.by_leader import OwnMoments
from clustering_protocols.terms.agreements import Member, read_agreement
from clustering_protocols.wire.states import StopReason
from party_sdk.disclosures.history import ShownTables
from party_sdk.disclosures.intersections import Intersections
from party_sdk.disclosures.privacy_budget import PrivacyBudget
from party_sdk.disclosures.sum_history import SummedRows
from party_sdk.home.consents import Consents
from party_sdk.home.files import (
    lock_folder,
    private_folder,
    read_private,
    write_private,
)
from party_sdk.party.durable_state import DurableState, StandingFiles
from party_sdk.party.kept_mappings import KeptMappings
from party_sdk.party.ledger import Ledger
from party_sdk.results.trained_rows import VariableMoments

_REPORT = "report.json"
_LONGEST_NAME: Final = 40


class Identity(BaseModel):
    """Who a party is in a session. Holds secrets: its ``repr`` does not show them.

    ``entropy`` is empty once the result is there: the session's keys go with it.
    ``columns`` are those of the table with which it joined, in their order.
    ``accepted_risks`` are those of the terms that it accepted when it joined.
    ``told`` are the addresses that it named (:mod:`party_sdk.party.notifications`).
    ``ended`` is how the session ended without a result, as far as the analyst said.
    """

    invitation: str = ""
    entropy: str
    terms: str
    member: Member | None = None
    token: str | None = None
    data_digest: str | None = None
    columns: tuple[str, ...] = ()
    choices: dict[str, Any] = {}
    accepted_risks: tuple[str, ...] = ()
    told: tuple[dict[str, str | None], ...] = ()
    ended: str = ""

    def __repr__(self) -> str:
        return "<Identity>"

    __str__ = __repr__


class PartyFolder:
    """The folder of one party in one session."""

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self.session, self.slot = session, slot
        self.path = home / "parties" / session / slot
        self._home = home
        self.spending = PrivacyBudget(home)
        self.intersections = Intersections(home)
        self.shown = ShownTables(home)
        self.summed = SummedRows(home)

    @property
    def exists(self) -> bool:
        """Return whether the party has been here before."""
        return self._identity.exists()

    @property
    def has_joined(self) -> bool:
        """Return whether the party takes part: the analyst has given it a token."""
        return self.exists and self.load_identity().token is not None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep a second process from running the same party; :class:`NotReady` for it."""
        with lock_folder(self.path):
            yield

    def load_identity(self) -> Identity:
        """Return who the party is; :class:`NotReady` if it never joined from here."""
        try:
            return Identity.model_validate_json(read_private(self._identity))
        except FileNotFoundError:
            if self._forgotten():
                raise NotReady(
                    f"This party was forgotten: of {self.session} {self.slot} only the "
                    "log and the report are left.",
                    remedy="'coterie party report' shows the report.",
                ) from None
            raise NotReady(
                f"Nothing is kept in {self.path}: join first.{self._meant()}"
            ) from None

    def _meant(self) -> str:
        """Return which session or slot of this home somebody may have meant."""
        session = self.path.parent
        named, place = (
            (self.slot, session) if session.exists() else (self.session, session.parent)
        )
        return did_you_mean(named, (each.name for each in place.glob("*")))

    def save_identity(self, identity: Identity) -> None:
        """Keep who the party is."""
        private_folder(self.path)
        write_private(self._identity, identity.model_dump_json().encode())

    def load_agreement(self) -> bytes | None:
        """Return the exact bytes of the agreement, once it is known."""
        path = self.path / "agreement.json"
        return read_private(path) if path.exists() else None

    def save_agreement(self, agreement: bytes) -> None:
        """Keep the agreement; it never changes."""
        write_private(self.path / "agreement.json", agreement)

    @property
    def use(self) -> str:
        """Return what a release of this party is counted under: one per agreement."""
        return "/".join((self.session, self.slot, self._agreement_digest))

    @property
    def attempt(self) -> str:
        """Return what all slots of this session are at once: one agreement."""
        return "/".join((self.session, self._agreement_digest))

    @property
    def _agreement_digest(self) -> str:
        agreement = self.load_agreement()
        return "" if agreement is None else sha256(agreement).hexdigest()

    def load_arrived(self) -> AdmittedRows | None:
        """Return which rows of the table the session sees; None for all, as they are."""
        path = self._arrived_path
        return AdmittedRows.decode(read_private(path)) if path.exists() else None

    def save_arrived(self, arrived: AdmittedRows | None) -> None:
        """Keep which rows the session sees: labels go back to them without the table."""
        if arrived is None:
            self._arrived_path.unlink(missing_ok=True)
        else:
            write_private(self._arrived_path, arrived.encode())

    def load_standing(self) -> DurableState:
        """Return where the party stands: what it answered last, and what it knows."""
        return self._standing_files.load()

    def save_standing(self, standing: DurableState) -> None:
        """Keep where the party stands from now on, before anything is sent."""
        self._standing_files.save(standing)

    def has_receipt(self, journal: Journal) -> bool:
        """Return whether the analyst has acknowledged the last answer of a journal."""
        return self.ledger.has_receipt((journal.round, journal.attempt))

    def leave(self, said: str, reason: StopReason) -> None:
        """Let the party answer nothing any more, since its people left the session.

        said: why, for its own people. reason: the word for others.
        """
        self._rewrite(self.load_standing().journal.stop(said, reason, left=True))

    def go_on(self) -> None:
        """Take back that the party was stopped."""
        self._rewrite(self.load_standing().journal.go_on())

    def _rewrite(self, journal: Journal) -> None:
        last = self.load_standing()
        self.save_standing(replace(last, turn=last.turn + 1, journal=journal))

    @property
    def has_told_stop(self) -> bool:
        """Return whether the analyst was told that the party stopped for good."""
        return self._told_stop_path.exists()

    def note_told_stop(self) -> None:
        """Remember that the analyst was told that the party stopped for good."""
        self._told_stop_path.touch(mode=0o600)

    @property
    def is_held(self) -> bool:
        """Return whether the operator refused an answer, and has agreed to none since."""
        return self._held_path.exists()

    def hold(self, *, refused: bool) -> None:
        """Remember that the operator refused an answer, or has agreed to one again."""
        if refused:
            self._held_path.touch(mode=0o600)
        else:
            self._held_path.unlink(missing_ok=True)

    @cached_property
    def consents(self) -> Consents:
        """Return to which kinds of contribution its people have said yes."""
        return Consents(self.path / "consents.json")

    @cached_property
    def ledger(self) -> Ledger:
        """Return the log of what was sent this party."""
        return Ledger(self.path / "sent.log")

    @property
    def mappings(self) -> KeptMappings:
        """Return the mappings of this party's table."""
        return KeptMappings(self.path, lambda: self.shown.key("mapping"))

    def keyed_table_digest(self) -> str:
        """Return a keyed digest (hex) of the rows that took part; empty before."""
        known = self.load_identity().data_digest
        if known is None:
            return ""
        key = self.shown.key("table")
        return blake2b(known.encode(), key=key, digest_size=32).hexdigest()

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """Return the name of each cluster, '' for none; empty before any is named."""
        path = self.path / "cluster-names.json"
        stored = json.loads(read_private(path)) if path.exists() else {}
        names = {int(cluster): name for cluster, name in stored.items()}
        return tuple(names.get(c, "") for c in range(1 + max(names, default=-1)))

    def name_clusters(
        self, names: Mapping[int, str], n_clusters: int
    ) -> tuple[str, ...]:
        """Store new names beside the others, and return all; '' takes a name back.

        Raises InvalidParameters if a cluster does not exist, a name is no line of 1 to
            40 printable characters, or two clusters have the same.
        """
        remedy = "Name a cluster by its number: --name 3=SIDD; --name 3= takes it back."
        for cluster, name in names.items():
            if not 0 <= cluster < n_clusters:
                raise InvalidParameters(
                    f"There is no cluster {cluster}: they are 0 to {n_clusters - 1}.",
                    remedy=remedy,
                )
            if len(name) > _LONGEST_NAME or not name.isprintable():
                raise InvalidParameters(
                    f"A name has 1 to {_LONGEST_NAME} printable characters; that of "
                    f"cluster {cluster} has others, or {len(name)}.",
                    remedy=remedy,
                )
        merged = dict(enumerate(self.cluster_names))
        merged |= {cluster: name.strip() for cluster, name in names.items()}
        merged = {cluster: name for cluster, name in merged.items() if name}
        if len(set(merged.values())) < len(merged):
            raise InvalidParameters("Two clusters have the same name.", remedy=remedy)
        path = self.path / "cluster-names.json"
        write_private(path, json.dumps(merged).encode())
        return self.cluster_names

    def load_moments(self) -> OwnMoments | None:
        """Return the moments of the own rows, as they were clustered; None before."""
        path = self._moments_path
        return OwnMoments.decode(read_private(path)) if path.exists() else None

    def load_variables(self) -> VariableMoments | None:
        """Return the moments of the own rows before they were prepared, if they were."""
        path = self._variables_path
        return VariableMoments.decode(read_private(path)) if path.exists() else None

    def save_moments(self, own: OwnMoments, variables: VariableMoments | None) -> None:
        """Keep the moments of the own rows: new rows are compared with them."""
        if variables is not None:
            write_private(self._variables_path, variables.encode())
        write_private(self._moments_path, own.encode())

    def load_result(self) -> bytes | None:
        """Return the result, once it was fetched."""
        path = self.path / "result.arrays"
        return read_private(path) if path.exists() else None

    def save_result(self, result: bytes) -> None:
        """Keep the result."""
        write_private(self.path / "result.arrays", result)

    @property
    def member(self) -> Member | None:
        """Return this party's line of the roster, once it has said it."""
        if self.exists:
            return self.load_identity().member
        agreement = self.load_agreement()
        return (
            None
            if agreement is None
            else read_agreement(agreement)[0].member(self.slot)
        )

    def load_report(self) -> bytes | None:
        """Return the report that was written when the rest was forgotten."""
        path = self.path / _REPORT
        return read_private(path) if path.exists() else None

    def forget(self, report: bytes | None = None, *, everything: bool = False) -> None:
        """Delete what this party keeps of the session, secrets included.

        The log of what was sent and the agreement stay, and ``report`` with them, unless
        ``everything`` goes: see :meth:`forgotten`.
        """
        if everything:
            shutil.rmtree(self.path)
            return
        agreement = self.load_agreement()
        self._identity.unlink(missing_ok=True)
        place = private_folder(self._before / str(len(self._forgotten()) + 1))
        for name, content in (("agreement.json", agreement), (_REPORT, report)):
            if content is not None:
                write_private(place / name, content)
        with suppress(FileNotFoundError):
            (self.path / "sent.log").rename(place / "sent.log")
        for left in self.path.iterdir():
            if left != self._before:
                left.unlink()

    def forgotten(self) -> PartyFolder | None:
        """Return what outlived the last time that this party was forgotten, if any."""
        before = self._forgotten()
        if not before:
            return None
        found = PartyFolder(self._home, self.session, self.slot)
        found.path = before[-1]
        return found

    def _forgotten(self) -> list[Path]:
        return sorted(self._before.glob("*"), key=lambda path: int(path.name))

    @property
    def _before(self) -> Path:
        return self.path / "forgotten"

    @property
    def _identity(self) -> Path:
        return self.path / "identity.json"

    @property
    def _arrived_path(self) -> Path:
        return self.path / "arrived.arrays"

    @property
    def _moments_path(self) -> Path:
        return self.path / "moments.arrays"

    @property
    def _variables_path(self) -> Path:
        return self.path / "variables.arrays"

    @property
    def _held_path(self) -> Path:
        return self.path / "held"

    @property
    def _told_stop_path(self) -> Path:
        return self.path / "told-stop"

    @property
    def _standing_files(self) -> StandingFiles:
        return StandingFiles(self.path)

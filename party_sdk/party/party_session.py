"""A party's stored session: a row of the home's database, and the rows that refer to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, Field

from clustering_protocols.common.errors import Equivocation, InvalidParameters, NotReady
from clustering_protocols.common.values import suggest_similar_name
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import Journal
from clustering_protocols.terms.agreements import Member, read_agreement
from clustering_protocols.terms.terms import read_terms
from party_sdk.disclosures.history import History
from party_sdk.home.clock import now
from party_sdk.home.store import store_of
from party_sdk.party.ledger import Ledger
from party_sdk.party.stored_mappings import StoredMappings

_MAX_NAME_LENGTH: Final = 40
_ERASED_TABLES: Final = (
    "answers", "memory", "mappings", "outputs", "orders", "decisions",
)  # fmt: skip

WITHDRAWN = (
    "You withdrew your consent. What was sent stays sent; nothing more is sent until you "
    "are asked again and say yes. Until then the others wait for you, at most until the "
    "deadline of the round."
)
"""The text that the operator reads after withdrawing consent."""


class Document(StrEnum):
    """The names of the documents of a session, each of which is stored at most once.

    The agreement and the report are kept when the rest is forgotten.
    """

    AGREEMENT = "agreement"
    REPORT = "report"
    RESULT = "result"
    ADMITTED_ROWS = "admitted-rows"
    MOMENTS = "moments"


class NotificationRequest(BaseModel):
    """A request to notify an address: registered (``id``), refused or still waiting."""

    address: str = Field(repr=False)
    id: str = ""
    problem: str = ""

    @property
    def is_waiting(self) -> bool:
        """Return whether the address has not been sent to the analyst yet."""
        return not self.id and not self.problem

    @property
    def line(self) -> str:
        """Return the state of the request in one line."""
        if self.is_waiting:
            return f"{self.address} waits until this party runs with its data."
        if self.problem:
            return f"{self.address} is not notified: {self.problem}"
        return f"{self.id}  named when joining"


class Identity(BaseModel):
    """A party's identity in a session; ``repr`` does not show the secrets it holds.

    entropy: empty once the result is stored, which destroys the keys of the session.
    columns: the columns of the table with which the party joined, in their order.
    accepted_risks: the risk codes of the accepted terms.
    told: the requests to notify addresses (:mod:`party_sdk.party.notifications`).
    ended: the final state of a session that ended without a result; otherwise empty.
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
    told: tuple[NotificationRequest, ...] = ()
    ended: str = ""

    def __repr__(self) -> str:
        return "<Identity>"

    __str__ = __repr__


class Consent(BaseModel, frozen=True):
    """Consent to everything that a terms sheet lists.

    sheet: the SHA-256 of the sheet, in hex.
    at: when the sheet was accepted.
    withdrawn_at: when the consent was withdrawn; None while it is valid.
    is_held: whether the operator refused the last answer that needed approval.
    """

    sheet: str
    at: AwareDatetime
    withdrawn_at: AwareDatetime | None = None
    is_held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableState:
    """The state of a party, which is stored before its answer is sent.

    round, attempt, task_digest: identify the last answered task.
    contribution, contribution_digest: the bytes of the last answer, and their digest.
    before, after: the memory before and after the last answer.
    """

    round: int = 0
    attempt: int = 0
    task_digest: str = ""
    contribution_digest: str = ""
    contribution: bytes = field(default=b"", repr=False)
    journal: Journal = field(default_factory=Journal)
    before: Memory = field(default_factory=Memory)
    after: Memory = field(default_factory=Memory)

    @property
    def round_key(self) -> tuple[int, int]:
        """Return the numbers of the round and the attempt."""
        return self.round, self.attempt

    def memory_before(self, round_: int, attempt: int) -> Memory:
        """Return the memory before a new round, or a new attempt of the last round.

        Raises Equivocation if the round or attempt is not new.
        """
        if round_ == self.round and attempt > self.attempt:
            return self.before
        if round_ > self.round:
            return self.after
        raise Equivocation(
            f"Round {round_}, attempt {attempt} came after round {self.round}, attempt "
            f"{self.attempt}."
        )

    @property
    def sent_contribution(self) -> bytes:
        """Return the last answer as it was sent; raise NotReady if it was changed."""
        if sha256(self.contribution).hexdigest() != self.contribution_digest:
            raise NotReady("The last answer was changed; ask for a new session.")
        return self.contribution


class PartySession:
    """The stored session of one party of a home.

    forgotten: the row id of a forgotten party; by default the current party is meant.
    """

    def __init__(
        self, home: Path, session: str, slot: str, forgotten: int | None = None
    ) -> None:
        self.session, self.slot = session, slot
        self.home, self.store = home, store_of(home)
        self._id = forgotten
        self.history = History(home)

    @property
    def id(self) -> int | None:
        """Return the party's row id in ``parties``, or None if nothing is stored."""
        if self._id is not None:
            return self._id
        row = self.store.fetch_row(
            "SELECT id FROM parties WHERE session = ? AND slot = ? AND NOT is_forgotten",
            self.session,
            self.slot,
        )
        return row and int(row[0])

    def id_in(self, database: Connection) -> int:
        """Return the party's row id, after inserting the row if there is none."""
        if (row_id := self.id) is not None:
            return row_id
        [row_id] = database.execute(
            "INSERT INTO parties (session, slot) VALUES (?, ?) RETURNING id",
            (self.session, self.slot),
        ).fetchone()
        return int(row_id)

    def _set_column(self, column: str, value: object) -> None:
        with self.store.transaction() as database:
            database.execute(
                f"UPDATE parties SET {column} = ? WHERE id = ?",  # noqa: S608  constants
                (value, self.id_in(database)),
            )

    def _get_column(self, column: str) -> Any:
        row = self.store.fetch_row(
            f"SELECT {column} FROM parties WHERE id = ?",  # noqa: S608  constants
            self.id,
        )
        return row and row[0]

    @property
    def exists(self) -> bool:
        """Return whether the party has accepted the terms."""
        return bool(self._get_column("identity IS NOT NULL"))

    @property
    def has_joined(self) -> bool:
        """Return whether the party has joined and received a token."""
        return bool(self._get_column("identity ->> '$.token' IS NOT NULL"))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the party for the block; raise NotReady if another process is running it."""
        with self.store.lease(f"{self.session} {self.slot}"):
            previous_id, self._id = self._id, self.id
            try:
                yield
            finally:
                self._id = previous_id

    @property
    def is_free(self) -> bool:
        """Return whether no process is running this party."""
        return self.store.lease_holder(f"{self.session} {self.slot}") is None

    def load_identity(self) -> Identity:
        """Return the party's identity; raise NotReady if none is stored."""
        text = self._get_column("identity")
        if text is not None:
            return Identity.model_validate_json(text)
        if self.last_forgotten():
            raise NotReady(
                f"This home has forgotten the party {self.session} {self.slot}; only its "
                "ledger and report remain.",
                remedy="'coterie party report' shows the report.",
            )
        slots = self.store.fetch_rows(
            "SELECT slot FROM parties WHERE session = ?", self.session
        )
        sessions = self.store.fetch_rows("SELECT session FROM parties")
        name, rows = (self.slot, slots) if slots else (self.session, sessions)
        suggestion = suggest_similar_name(name, [known for [known] in rows])
        raise NotReady(
            f"{self.home} stores nothing of {self.session} {self.slot}: join first."
            f"{suggestion}"
        )

    def save_identity(self, identity: Identity) -> None:
        """Store the party's identity in place of the earlier one."""
        self._set_column("identity", identity.model_dump_json())

    def load_document(self, document: Document) -> bytes | None:
        """Return a document, or None if it is not stored."""
        row = self.store.fetch_row(
            "SELECT content FROM documents WHERE party = ? AND name = ?",
            self.id,
            document,
        )
        return row and bytes(row[0])

    def save_document(self, document: Document, content: bytes | None) -> None:
        """Store a document; if the content is None, erase it."""
        with self.store.transaction() as database:
            key = self.id_in(database), document
            database.execute("DELETE FROM documents WHERE party = ? AND name = ?", key)
            if content is not None:
                database.execute(
                    "INSERT INTO documents VALUES (?, ?, ?)", (*key, content)
                )

    @property
    def agreement(self) -> bytes | None:
        """Return the exact bytes of the agreement, or None until all have joined."""
        return self.load_document(Document.AGREEMENT)

    @property
    def result(self) -> bytes | None:
        """Return the stored bytes of the result, or None if there is none yet."""
        return self.load_document(Document.RESULT)

    @property
    def report(self) -> bytes | None:
        """Return the report that was stored when the session was forgotten, or None."""
        return self.load_document(Document.REPORT)

    @property
    def agreement_id(self) -> str:
        """Return the session and the digest of its agreement, as one text."""
        agreement = self.agreement
        digest = "" if agreement is None else sha256(agreement).hexdigest()
        return f"{self.session}/{digest}"

    def load_state(self) -> DurableState:
        """Return the party's state, which is the initial state if nothing is stored."""
        row = self.store.fetch_row(
            "SELECT round, attempt, task_digest, contribution_digest, contribution, "
            "journal FROM answers WHERE party = ?",
            self.id,
        )
        if row is None:
            return DurableState()
        entries: dict[str, dict[str, bytes]] = {"before": {}, "after": {}}
        for moment, kind, content in self.store.fetch_rows(
            "SELECT moment, kind, content FROM memory WHERE party = ?", self.id
        ):
            entries[moment][kind] = content
        return DurableState(
            **dict(row) | {"journal": Journal.decode(row["journal"])},
            before=Memory(entries["before"]),
            after=Memory(entries["after"]),
        )

    @property
    def journal(self) -> Journal:
        """Return the journal of answered tasks."""
        row = self.store.fetch_row(
            "SELECT journal FROM answers WHERE party = ?", self.id
        )
        return Journal.decode(row[0]) if row else Journal()

    def save_state(self, state: DurableState, before: DurableState) -> None:
        """Store the party's state, before its answer is sent.

        before: the stored state, whose unchanged memory is not written again.
        """
        with self.store.transaction() as database:
            party = self.id_in(database)
            database.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET round = excluded.round, attempt = excluded.attempt, "
                "task_digest = excluded.task_digest, "
                "contribution_digest = excluded.contribution_digest, "
                "contribution = excluded.contribution, journal = excluded.journal",
                (
                    party,
                    *state.round_key,
                    state.task_digest,
                    state.contribution_digest,
                    state.contribution,
                    state.journal.encode(),
                ),
            )
            memories = (
                ("before", before.before, state.before),
                ("after", before.after, state.after),
            )
            for moment, old, new in memories:
                for kind, content in new.entries.items():
                    if old.entries.get(kind) != content:
                        database.execute(
                            "INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?)",
                            (party, moment, kind, content),
                        )
                for kind in old.entries.keys() - new.entries.keys():
                    database.execute(
                        "DELETE FROM memory WHERE party = ? AND moment = ? AND kind = ?",
                        (party, moment, kind),
                    )

    def save_journal(self, journal: Journal) -> None:
        """Store the journal of answered tasks."""
        with self.store.transaction() as database:
            database.execute(
                "INSERT INTO answers VALUES (?, 0, 0, '', '', x'', ?) ON CONFLICT DO "
                "UPDATE SET journal = excluded.journal",
                (self.id_in(database), journal.encode()),
            )

    @property
    def stop_announced(self) -> bool:
        """Return whether the analyst knows that the party stopped for good."""
        return bool(self._get_column("stop_announced"))

    def save_stop_announced(self) -> None:
        """Record that the analyst knows that the party stopped for good."""
        self._set_column("stop_announced", 1)

    @property
    def consent(self) -> Consent | None:
        """Return the consent to the terms sheet; None if no terms are stored."""
        content = self._get_column("consent")
        return content and Consent.model_validate_json(content)

    def accept_terms(self, identity: Identity) -> None:
        """Store the identity of a party that accepts its terms, with its consent."""
        with self.store.transaction():
            self.save_identity(identity)
            self.give_consent()

    def give_consent(self) -> None:
        """Store consent to the sheet of the terms; a refused answer stays refused."""
        from coterie_pages.views.terms_sheet import consent_digest

        text = self.load_identity().terms.encode()
        sheet = consent_digest(text, read_terms(text))
        with self.store.transaction():
            before = self.consent
            is_held = before is not None and before.is_held
            self._save_consent(Consent(sheet=sheet, at=now(), is_held=is_held))

    def withdraw_consent(self) -> None:
        """Withdraw the consent: contributions need approval until it is given again."""
        self._change_consent(withdrawn_at=now())

    def hold_contributions(self, *, are_held: bool) -> None:
        """Store whether the operator refused the last answer that needed approval."""
        self._change_consent(is_held=are_held)

    def _change_consent(self, **changes: Any) -> None:
        with self.store.transaction():
            if (consent := self.consent) is not None:
                self._save_consent(consent.model_copy(update=changes))

    def _save_consent(self, consent: Consent) -> None:
        self._set_column("consent", consent.model_dump_json())

    @cached_property
    def ledger(self) -> Ledger:
        """Return the log of this party's contributions."""
        return Ledger(self)

    @property
    def mappings(self) -> StoredMappings:
        """Return the mappings of this party's table."""
        return StoredMappings(self)

    def keyed_table_digest(self) -> str:
        """Return a keyed digest (hex) of the rows of the party; empty before it joins."""
        digest = self.load_identity().data_digest
        if digest is None:
            return ""
        key = self.history.key("table")
        return blake2b(digest.encode(), key=key, digest_size=32).hexdigest()

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """Return the names of clusters, '' for an unnamed one; () if all are unnamed."""
        stored = json.loads(self._get_column("cluster_names") or "{}")
        names = {int(cluster): name for cluster, name in stored.items()}
        return tuple(names.get(c, "") for c in range(1 + max(names, default=-1)))

    def name_clusters(
        self, names: Mapping[int, str], n_clusters: int
    ) -> tuple[str, ...]:
        """Add names of clusters, and return all names; '' removes a name.

        Raises InvalidParameters if a cluster does not exist, if a name is not a line of
        1 to 40 printable characters, or if two clusters have the same name.
        """
        remedy = "Name a cluster by its number: --name 3=SIDD; --name 3= removes it."
        for cluster, name in names.items():
            if not 0 <= cluster < n_clusters:
                raise InvalidParameters(
                    f"There is no cluster {cluster}; the last is {n_clusters - 1}.",
                    remedy=remedy,
                )
            if len(name) > _MAX_NAME_LENGTH or not name.isprintable():
                raise InvalidParameters(
                    f"A name has 1 to {_MAX_NAME_LENGTH} printable characters; the "
                    f"name of cluster {cluster} has {len(name)}, or unprintable ones.",
                    remedy=remedy,
                )
        merged = dict(enumerate(self.cluster_names))
        merged |= {cluster: name.strip() for cluster, name in names.items()}
        merged = {cluster: name for cluster, name in merged.items() if name}
        if len(set(merged.values())) < len(merged):
            raise InvalidParameters("Two clusters have the same name.", remedy=remedy)
        self._set_column("cluster_names", json.dumps(merged))
        return self.cluster_names

    @property
    def written_files(self) -> dict[str, str]:
        """Return the digest of each file that this session wrote, by its path."""
        return dict(
            self.store.fetch_rows(
                "SELECT path, digest FROM outputs WHERE party = ?", self.id
            )
        )

    def save_written_files(self, digests: Mapping[str, str]) -> None:
        """Record the digests of files that this session has written or will write."""
        with self.store.transaction() as database:
            party = self.id_in(database)
            database.executemany(
                "INSERT OR REPLACE INTO outputs VALUES (?, ?, ?)",
                [(party, path, digest) for path, digest in digests.items()],
            )

    @property
    def member(self) -> Member | None:
        """Return this party's roster entry; None until it has enrolled."""
        if self.exists:
            return self.load_identity().member
        agreement = self.agreement
        if agreement is None:
            return None
        return read_agreement(agreement)[0].member(self.slot)

    def forget(self, report: bytes | None = None, *, everything: bool = False) -> None:
        """Erase the stored session, including its secrets.

        The log, the agreement and the report remain, unless ``everything`` is erased;
        see :meth:`last_forgotten`.
        """
        home = self.home.resolve()
        paths = [p for p in map(Path, self.written_files) if p.is_relative_to(home)]
        with self.store.transaction() as database:
            if everything:
                database.execute(
                    "DELETE FROM parties WHERE session = ? AND slot = ?",
                    (self.session, self.slot),
                )
            else:
                party = self.id_in(database)
                if report is not None:
                    self.save_document(Document.REPORT, report)
                database.execute(
                    "DELETE FROM documents WHERE party = ? AND name NOT IN (?, ?)",
                    (party, Document.AGREEMENT, Document.REPORT),
                )
                for table in _ERASED_TABLES:
                    database.execute(f"DELETE FROM {table} WHERE party = ?", (party,))  # noqa: S608  constants
                database.execute(
                    "UPDATE parties SET is_forgotten = 1, identity = NULL, consent = NULL, "
                    "stop_announced = 0, cluster_names = '{}' WHERE id = ?",
                    (party,),
                )
        self.store.erase_log()
        for path in paths:
            path.unlink(missing_ok=True)

    def last_forgotten(self) -> PartySession | None:
        """Return what remains of this party since it was last forgotten, or None."""
        [row_id] = self.store.fetch_row(
            "SELECT max(id) FROM parties WHERE session = ? AND slot = ? AND is_forgotten",
            self.session,
            self.slot,
        )
        return row_id and PartySession(self.home, self.session, self.slot, row_id)

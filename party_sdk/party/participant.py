"""A party in a session: the loop from invitation to labels.

Killed anywhere, it continues where it was: what it sent is on its disk, byte for byte,
and everything that it asks of the analyst may be asked again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from clustering_protocols import engine
from clustering_protocols.catalogue import check_choices, limits_of
from clustering_protocols.common.errors import (
    AgreementMismatch,
    CoterieError,
    GuardRefused,
    InvalidArray,
    KeyNotAuthentic,
    NotReady,
    SessionOver,
    ShapeConflict,
    Unauthenticated,
    Unavailable,
)
from clustering_protocols.contract import Outcome
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import safety_number as number_of
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.row_selection import AdmittedRows, Arrival
from clustering_protocols.shared_stages.statistics.by_leader import OwnMoments, measure
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.session_risks import SHOWN_TOGETHER, SUMS_LIMIT
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.answers import Preview
from clustering_protocols.wire.states import SessionState
from party_sdk.admission.table_admission import (
    SlotFields,
    agreed_in,
    arrival_of,
    select_clustered,
    units_of,
)
from party_sdk.admission.table_files import TableSpec
from party_sdk.analyst_client.analyst import Analyst, end_of
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.disclosures.uses import Use
from party_sdk.home.files import default_home
from party_sdk.home.own_packages import use_home
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import read_policy
from party_sdk.party.asker import Asker
from party_sdk.party.leave import check_staying, go_on, telling_refusals, telling_stops
from party_sdk.party.notifications import OwnReceivers, leave_addresses, name_addresses
from party_sdk.party.party_session import Document, Identity, PartySession
from party_sdk.party.roster import Meeting
from party_sdk.party.rounds import OnProgress, Responder, SessionWatch

# Libraries of tables are imported when rows are read: who joins has not come to that
if TYPE_CHECKING:
    from party_sdk.results.new_rows import Comparison, NewRows
    from party_sdk.results.results import Result
    from party_sdk.tables import IdColumns
    from party_sdk.tables.mapping import TableMapping

_ATTEMPTS: Final = 5
_OBJECT: Final = "an object"


class Party:
    """One party of one session.

    Use :meth:`join` with an invitation, then :meth:`run` with a table. Both may be
    repeated, in another process too. As a context manager it closes its connections.
    """

    def __init__(
        self,
        invitation: Invitation,
        stored: PartySession,
        analyst: Analyst,
        policy: Policy,
        preview: Preview | None,
        choices: Mapping[str, Any],
        meeting: Meeting,
    ) -> None:
        self.invitation, self.stored, self.preview = invitation, stored, preview
        self._identity = stored.load_identity()
        self._policy = policy.accept_risks(self._identity.accepted_risks)
        self._choices = choices
        self._analyst = analyst
        self._meeting = meeting

    @classmethod
    def join(
        cls,
        invitation: str,
        *,
        policy: Policy | None = None,
        home: Path | None = None,
        entropy: bytes | None = None,
        analyst: Analyst | None = None,
        choices: Mapping[str, Any] | None = None,
        asker: Asker | None = None,
        safety_number: str | None = None,
        confirmed_with: Collection[str] = (),
        accept_moved: bool = False,
    ) -> Party:
        """Read what an invitation is for, check it, and remember it.

        policy: what this party accepts; by default what ``policy.toml`` of the home
            says.
        home: where to keep memory and the institution's identity; ``$COTERIE_HOME`` or
            ``~/.coterie`` by default.
        entropy: 32 bytes from which all of this party's chance follows, and its
            identity; from the operating system by default, and the identity of the
            home.
        choices: what this party decides alone; the protocol's README lists what it
            knows, for `dc` a fitted ``transformer`` and a ``rebuild_limit``.
        asker: the operator, who reads who takes part, and what a protocol asks about
            before a contribution leaves; nobody is asked by default: see
            :class:`~party_sdk.party.asker.Asker`.
        safety_number: what the others read: another number stops this party.
        confirmed_with: the names of the members that read it themselves; they count as
            known.
        accept_moved: whether a later invitation to the same slot may name another
            address of the analyst, who is sent this party's token there.

        Raises RiskNotAccepted, GuardRefused, VersionMismatch, InvalidParameters: before
            anything of the data is known to the analyst.
        """
        parsed = Invitation.parse(invitation)
        home = home or default_home()
        stored = PartySession(home, parsed.session, parsed.slot)
        if stored.exists:
            check_again(parsed, stored, accept_moved=accept_moved)
        analyst = analyst or connect(parsed.url)
        if policy is None:
            use_home(home)
            policy = read_policy(home)
        meeting = Meeting(home, entropy, asker, safety_number, confirmed_with)
        preview = None
        if not stored.exists:
            preview = first_time(parsed, stored, analyst, policy, meeting)
        choices = choices or {}
        return cls(parsed, stored, analyst, policy, preview, choices, meeting)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._analyst.close()

    @property
    def identity(self) -> Institution:
        """Return who this party is: its institution's name and key."""
        return self._meeting.institution

    @property
    def safety_number(self) -> str | None:
        """Return the number that the members compare, once all have joined."""
        agreement = self.stored.agreement
        return None if agreement is None else number_of(agreement)

    def enrol(self, data: DataSource) -> Arrival:
        """Take the slot: tell the analyst sizes and public keys; return what arrives.

        The keys follow from entropy that is on disk already, so that a join whose
        response was lost is repeated with the same keys.
        """
        known = self.stored.load_identity()
        if known.token is None:  # what was accepted then is accepted
            self._policy.check_terms(self.terms)
        terms, rows_digest = self.terms, data_digest(data)
        arrival = arrival_of(terms, self.invitation.slot, data)
        self._policy.check_rows(terms, arrival.data.n_rows)
        check_choices(terms.protocol.name, self._choices)
        check_same_rows(known.data_digest, rows_digest)
        self._check_history(arrival.data)
        if known.token is not None:
            self._identity = known
            limits = limits_of(terms.protocol.name)
            self._choices = same_choices(self._identity.choices, self._choices, limits)
            return arrival
        member = known.member or roster_entries.enrol(
            self.invitation.secret,
            self._identity.terms.encode(),
            self.stored.slot,
            self._entropy,
            self._meeting.institution,
            n_rows=arrival.data.n_rows,
            n_columns=len(terms.columns(self.stored.slot, data.columns)),
        )
        update = {
            "member": member,
            "data_digest": rows_digest,
            "columns": tuple(data.columns),
            "choices": fingerprint(self._choices),
        }
        line = member.model_dump_json().encode()
        with self.stored.store.transaction():
            rows = arrival.arrived
            content = None if rows is None else rows.encode()
            self.stored.save(Document.ADMITTED_ROWS, content)
            self._remember(known.model_copy(update=update))
            self.stored.ledger.note_joining(sha256(line).hexdigest())
        try:
            token = take_slot(self._analyst, self.invitation, self._entropy, member)
        except (GuardRefused, ShapeConflict):
            # the slot is free still: other data may come
            self._remember(known)
            raise
        self._remember(self._identity.model_copy(update={"token": token}))
        return arrival

    def _check_history(self, data: DataSource) -> None:
        """Refuse rows that earlier sessions have shown too much of; linked ones later."""
        terms, stored, history = self.terms, self.stored, self.stored.history
        use = Use.from_terms(terms, stored.attempt, stored.slot, data.columns)
        if not use.shows:
            return
        rows, cost = history.rows_of(data), check_terms(terms).epsilon_per_person
        update: dict[str, Any] = {"epsilon": cost}
        if self._intersection is not None:
            history.check(self._intersection, rows, self._policy)
            update["sums"] = False  # who is in them follows from the ids
        use, allowed = use.model_copy(update=update), self._allows_shown_together
        history.check(use, rows, self._policy, is_agreed=allowed)

    @property
    def _intersection(self) -> Use | None:
        """Return what blinded ids show of the rows; None where none leave."""
        return Use.intersection(self.terms, self.stored.attempt, self.stored.slot)

    @property
    def _allows_shown_together(self) -> bool:
        """Return whether the party allows what sessions show together."""
        given = (self._choices, self.stored.load_identity().choices)
        return any(bool(choices.get(SHOWN_TOGETHER)) for choices in given)

    def run(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        columns: list[str] | None = None,
        mapping: TableMapping | None = None,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Take part until there are labels.

        table: as for :func:`party_sdk.tables.open_table`, or what that returns.
        id_column: the column, or columns together, that name the rows; they never
            leave.
        columns: the columns to cluster; all but the id by default.
        mapping: how the table becomes what the terms describe; by default the one that
            is kept of this session. It is kept from then on.
        on_progress: called with the session's status whenever something moved.

        Raises CoterieError: with what is wrong and what to do.
        """
        with self.stored.lock(), self._noting_the_end():
            with telling_stops(self.stored, self._analyst):
                check_staying(self.stored)
            with self.tell_refusals():
                data = self._open(table, id_column, columns, mapping)
                arrival = self.enrol(data)
            try:
                with telling_stops(self.stored, self._analyst):
                    outcome = self._to_the_end(arrival, on_progress)
            except Unauthenticated:
                # the token has expired, and the key gets a new one; where it was
                # revoked, so was the invitation, and the analyst says so
                self._remember(self._identity.model_copy(update={"token": None}))
                arrival = self.enrol(data)
                with telling_stops(self.stored, self._analyst):
                    outcome = self._to_the_end(arrival, on_progress)
        return self._result_of(outcome, data)

    def tell_refusals(self) -> AbstractContextManager[None]:
        """Tell the others which check refuses the table, as long as the slot is free."""
        if self._identity.token is not None:
            return nullcontext()
        return telling_refusals(self._analyst, self.invitation.code)

    def _to_the_end(self, arrival: Arrival, on_progress: OnProgress | None) -> Outcome:
        kept = self.stored.result
        if kept is not None:
            return self._conclude(kept, arrival.data)
        analyst = self._analyst.as_party(self._identity.token or "")
        watch = SessionWatch(analyst, self.invitation.session, on_progress)
        go_on(self.stored, self._analyst, watch.look())
        receivers = OwnReceivers(analyst, self.invitation.session)
        refused = leave_addresses(self.stored, receivers)
        self._identity = self.stored.load_identity()
        for address, reason in refused.items():
            if self._meeting.asker is not None:
                self._meeting.asker.note({f"{address} is not told": reason})
        agreement = self._agreement(analyst, watch)
        party = self._engine(agreement)
        if (shown := self._intersection) is not None:
            history = self.stored.history
            history.record(shown, history.rows_of(arrival.data), self._policy)
        rounds = Responder(
            stored=self.stored,
            analyst=analyst,
            terms=self.terms,
            policy=replace(self._policy, sums_limit=self._sums_limit),
            asker=self._meeting.asker,
            shown_together=self._allows_shown_together,
        )
        rounds.send_again()
        task: bytes | None = None
        while True:
            watch.tell(busy=task is not None)
            task = task or watch.task()
            if task is not None:
                task = rounds.answer(party, task, arrival.data)
            elif watch.look().state is SessionState.COMPLETED:
                break
        result = analyst.result(self.invitation.session)
        outcome = self._conclude(result, arrival.data)
        if outcome.predict is not None:  # before the result, behind which nothing comes
            self._keep_moments(arrival.data)
        with self.stored.store.transaction():
            self.stored.save(Document.RESULT, result)  # not before it has been checked
            # what was sent and got can no longer be opened; reading the result takes no
            # key
            self._remember(self._identity.model_copy(update={"entropy": ""}))
        self.stored.store.erase_log()
        return outcome

    @contextmanager
    def _noting_the_end(self) -> Iterator[None]:
        """Remember how the session ended, if it does meanwhile, and raise why.

        That is the analyst's word: anyone who continues all the same asks again.
        """
        if self._identity.ended:
            self._remember(self._identity.model_copy(update={"ended": ""}))
        try:
            yield
        except SessionOver as over:
            self._remember(self._identity.model_copy(update={"ended": over.state}))
            raise end_of(over.state, over.reason, over.detail) from None

    def notify(self, addresses: Iterable[str]) -> None:
        """Have the analyst send mail to addresses, once it has a token.

        It is given them by :meth:`run`, after this party has joined with its data.
        """
        with self.stored.lock():
            name_addresses(self.stored, addresses)
            self._identity = self.stored.load_identity()

    def _agreement(self, analyst: Analyst, watch: SessionWatch) -> bytes:
        """Return the agreement, once all have joined, after checking it."""
        agreement = self.stored.agreement
        if agreement is not None:
            self._meeting.compare(agreement)
            return agreement
        while watch.look().state is SessionState.RECRUITING:
            engine.prepare_party(self.terms)
            watch.task()
        agreement = analyst.agreement(self.invitation.session)
        if self._identity.member is None:
            raise NotReady("This party has not joined yet.")
        roster_entries.check_agreement(
            agreement,
            self._identity.terms.encode(),
            self.invitation.secret,
            self._identity.member,
        )
        self._policy.check_roster(agreement, self.invitation.slot)
        self._meeting.meet(agreement, self.invitation.slot, self._policy)
        self.stored.save(Document.AGREEMENT, agreement)
        return agreement

    def _remember(self, identity: Identity) -> None:
        self.stored.save_identity(identity)
        self._identity = identity

    # As it stands on this disk: the analyst is asked nothing

    @property
    def terms(self) -> Terms:
        """Return the terms that were previewed."""
        return read_terms(self._identity.terms.encode())

    def _open(
        self,
        table: Any,
        id_column: IdColumns,
        columns: list[str] | None,
        mapping: TableMapping | None,
        *,
        keeps: bool = True,
    ) -> DataSource:
        """Return a table as rows, by the mapping that counts; keep that if it is new."""
        if isinstance(table, DataSource):
            return table
        counts = self.stored.mappings.choose(mapping, lambda _: False)
        from party_sdk.tables import (
            ReadOptions,  # not above: pages of help need no tables
        )

        options = ReadOptions(id_column=id_column, columns=columns, mapping=counts)
        data = TableSpec(path=table, options=options).open(self.slot_fields)
        if keeps:
            self.keep_mapping(counts, data)
        return data

    def keep_mapping(
        self, mapping: TableMapping | None, data: DataSource | None = None
    ) -> None:
        """Keep a mapping of this party's table: from now on it counts.

        data: the table as it makes it.

        Raises GuardRefused if the party joined with other data.
        """
        if mapping is None:
            return
        kept, ledger = self.stored.mappings, self.stored.ledger
        if mapping != kept.last():
            if data is not None and self._identity.data_digest is not None:
                check_same_rows(self._identity.data_digest, data_digest(data))
            kept.keep(mapping)
        digest = kept.digest(mapping)
        # a process that was killed in between wrote none
        if ledger.mapping_digest != digest:
            ledger.note_mapping(kept.version, digest)

    @property
    def slot_fields(self) -> SlotFields:
        """Return what the terms say of the fields of this party's table, if they do."""
        return agreed_in(self.terms, self.invitation.slot)

    def select_clustered(
        self, data: DataSource, labels: IntArray
    ) -> tuple[DataSource, IntArray]:
        """Return rows as the columns that were clustered, and their labels.

        Once the session is over. Rows without a value that they need are left out.
        """
        memory = self.stored.load_state().answered.after
        return select_clustered(self.terms, self.invitation.slot, memory, data, labels)

    def units(self, data: DataSource) -> FloatArray:
        """Return by what the session divided each column (m,) of clustered rows."""
        memory = self.stored.load_state().answered.after
        return units_of(self.terms, self.invitation.slot, memory, data)

    def result(
        self,
        table: Any = None,
        *,
        id_column: IdColumns = None,
        columns: list[str] | None = None,
        mapping: TableMapping | None = None,
    ) -> Result:
        """Return the result of a completed session, from what is kept on this disk.

        table, id_column, columns, mapping: as for :meth:`run`: what the party joined
            with, whose ids then stand beside the labels. No id is kept: without the
            table rows are numbered, in its order.

        Raises NotReady if there is no result yet.
        Raises GuardRefused if it is another table, or its rows are in another order.
        """
        kept = self.stored.result
        if kept is None:
            raise NotReady("This party has no result yet: run it to the end.")
        data = None
        if table is not None:
            data = self._open(table, id_column, columns, mapping, keeps=False)
            check_same_rows(self._identity.data_digest, data_digest(data))
        return self._result_of(self._conclude(kept, None), data)

    def _result_of(self, outcome: Outcome, data: DataSource | None) -> Result:
        """Return an outcome with the ids of this party's rows beside it.

        It reads other tables as this party's own was read.
        """
        from party_sdk.results.results import Result

        dictionary, preparation, _ = self.slot_fields
        columns = self._identity.columns
        result = Result.of(outcome, data, columns, dictionary, preparation)
        mapping = self.stored.mappings.last()
        return replace(result, _compare=self._compare, _mapping=mapping)

    def predict(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        agree: Callable[[str], bool] | None = None,
    ) -> NewRows:
        """Label new rows with the result that is kept here; nothing is sent.

        table, id_column, agree: as for :meth:`Result.predict`.

        Raises CoterieError: as of :meth:`result` and :meth:`Result.predict`.
        """
        return self.result().predict(table, id_column=id_column, agree=agree)

    def _keep_moments(self, data: DataSource) -> None:
        """Store moments of clustered rows, to compare new rows with them."""
        if check_terms(self.terms).describes:
            return
        rows, _ = self.select_clustered(data, np.arange(data.n_rows, dtype=np.int64))
        moments = OwnMoments.model_validate(
            dict(measure(rows, moments=True, ranges=True))
        )
        self.stored.save(Document.MOMENTS, moments.encode())
        if self.terms.plan(self.invitation.slot) is not None:
            from party_sdk.results.new_rows import measure_variables

            self.stored.save(Document.VARIABLES, measure_variables(data).encode())

    def _compare(self, data: DataSource, sizes: IntArray) -> Comparison:
        """Return new rows beside the trained ones.

        sizes: int64 (k,); own trained rows in each cluster.

        Raises NotReady if nothing of the trained rows is stored here.
        Raises InvalidData if no row has the values that it needs.
        """
        # only for new rows
        from party_sdk.results.new_rows import Comparison, VariableMoments

        trained = self.stored.load(Document.MOMENTS)
        if trained is None:
            raise NotReady("This home keeps no summary of the trained rows.")
        variables = self.stored.load(Document.VARIABLES)
        numbers = np.arange(data.n_rows, dtype=np.int64)
        rows, numbers = self.select_clustered(data, numbers)
        return Comparison(
            terms=self.terms,
            slot=self.invitation.slot,
            trained=OwnMoments.decode(trained),
            variables=None if variables is None else VariableMoments.decode(variables),
            sizes=sizes,
            table=data,
            rows=rows,
            numbers=numbers,
        )

    def _conclude(self, result: bytes, data: DataSource | None) -> Outcome:
        """Return what a result says, in the order of the table; data as they arrived."""
        party = self._engine(self.stored.agreement or b"")
        last = self.stored.load_state()
        outcome = party.conclude(
            last.journal,
            last.answered.after,
            result,
            data,
            acknowledged=self.stored.ledger.has_receipt(last.answered.place),
        )
        member = self._identity.member
        if member is not None and len(outcome.labels) != member.n_rows:
            raise InvalidArray(f"{len(outcome.labels)} labels, {member.n_rows} rows.")
        admitted = self._admitted_rows
        return outcome if admitted is None else admitted.put_back(outcome)

    @property
    def _admitted_rows(self) -> AdmittedRows | None:
        """Return which rows of the table the session sees; None for all, as they are.

        By these labels go back to the rows without the table.
        """
        stored = self.stored.load(Document.ADMITTED_ROWS)
        return None if stored is None else AdmittedRows.decode(stored)

    def foresee(self) -> list[Outcome | None]:
        """Return what this party knows of each run by itself, in the order of its table.

        None of a run that is not done, or whose labels come with the result.
        """
        party = self._engine(self.stored.agreement or b"")
        last = self.stored.load_state()
        admitted = self._admitted_rows
        return [
            each if each is None or admitted is None else admitted.put_back(each)
            for each in party.foresee(last.journal, last.answered.after)
        ]

    def _engine(self, agreement: bytes) -> engine.PartyEngine:
        return engine.PartyEngine(
            agreement=agreement,
            slot=self.invitation.slot,
            entropy=self._entropy,
            choices={**self._choices, SUMS_LIMIT: self._sums_limit},
            engine=LocalEngine(os.cpu_count() or 1),
        )

    @property
    def _sums_limit(self) -> float:
        """Return the share of rows that may follow: as chosen, or as the policy says."""
        limit: float = self._choices.get(SUMS_LIMIT, self._policy.sums_limit)
        return limit

    @property
    def _entropy(self) -> bytes:
        return bytes.fromhex(self._identity.entropy)


# Joining


def first_time(
    parsed: Invitation,
    stored: PartySession,
    analyst: Analyst,
    policy: Policy,
    meeting: Meeting,
) -> Preview:
    """Return the preview of an invitation that the policy covers; remember it."""
    try:
        policy.check_inviter(parsed.url, parsed.coordinator, meeting.trusted_keys)
        preview, terms = preview_terms(analyst, parsed)
        policy.check_terms(terms)
        meeting.check_seat(terms, parsed.slot)
    except CoterieError:
        analyst.close()
        raise
    drawn = meeting.entropy or secrets.token_bytes(32)
    identity = Identity(
        invitation=str(parsed),
        entropy=drawn.hex(),
        terms=preview.terms,
        accepted_risks=tuple(sorted(terms.risks)),  # the policy covers all of them
    )
    with stored.lock():
        if not stored.exists:  # of two that join at once the first one's draw counts
            stored.save_identity(identity)
    return preview


def check_again(later: Invitation, stored: PartySession, *, accept_moved: bool) -> None:
    """Refuse a second invitation that would lead this party to somebody else."""
    identity = stored.load_identity()
    first = Invitation.parse(identity.invitation)
    if later.secret != first.secret:
        raise GuardRefused(
            "This party joined with another invitation of this session and slot, which "
            "has another session secret: this one is not from the same coordinator. If it "
            "is meant for another session of this id, take part from another home "
            "(--home), or 'coterie party forget' the earlier one."
        )
    if (later.terms, later.coordinator) != (first.terms, first.coordinator):
        raise GuardRefused("This invitation is for other terms than were accepted.")
    if later.is_of_same_analyst(first):
        return
    if not accept_moved:
        raise GuardRefused(
            f"This party joined at {first.url}; this invitation names {later.url}. Its "
            "token is not sent there. If the coordinator confirms that the analyst has "
            "moved, say so to 'coterie party join': --moved, or accept_moved=True."
        )
    with stored.lock():
        stored.save_identity(identity.model_copy(update={"invitation": str(later)}))


def take_slot(
    analyst: Analyst, parsed: Invitation, entropy: bytes, member: Member
) -> str:
    """Join with a line of the roster, and return the token.

    The proof covers how often the slot was joined before: a repeat after a lost answer
    comes too late for its proof, and needs another.

    Raises KeyNotAuthentic if the analyst takes a proof of the right number for false.
    Raises Unavailable if others join the slot all the time.
    """
    for _ in range(_ATTEMPTS):
        joins = analyst.preview(parsed.code).joins
        proof = roster_entries.prove(
            entropy, parsed.session, member, parsed.code, joins
        )
        try:
            return analyst.join(parsed.code, member, proof)
        except KeyNotAuthentic:
            if analyst.preview(parsed.code).joins == joins:
                raise
    raise Unavailable(
        "Others join this slot all the time.",
        remedy="Ask who else runs a command for this slot, and run it once more alone.",
    )


def preview_terms(analyst: Analyst, parsed: Invitation) -> tuple[Preview, Terms]:
    """Return what the analyst previews of an invitation, and its terms.

    Raises AgreementMismatch if they are not those that the coordinator signed, for this
        session and slot.
    """
    preview = analyst.preview(parsed.code)
    if digest(preview.terms.encode()) != parsed.terms:
        raise AgreementMismatch(
            "The analyst shows other terms than the coordinator signed."
        )
    terms = read_terms(preview.terms.encode())
    if terms.identities.coordinator != parsed.coordinator:
        raise AgreementMismatch(
            "Somebody else than the terms' coordinator signed them."
        )
    if (terms.session, preview.slot) != (parsed.session, parsed.slot):
        raise AgreementMismatch("The analyst previews another session or slot.")
    return preview, terms


# What must be unchanged when a party resumes: its data and its choices


def data_digest(data: DataSource) -> str:
    """Return a SHA-256 over columns, ids and rows, in their order."""
    digest = sha256(length_prefixed(*data.columns))
    digest.update(length_prefixed(*(data.ids or ())))
    for batch in data.batches():
        # one form of no value: readers write it with different bits
        rows = np.where(np.isnan(batch), np.nan, batch)
        digest.update(np.ascontiguousarray(rows).reshape(-1).data)
    return digest.hexdigest()


def check_same_rows(kept: str | None, digest: str) -> None:
    """Refuse other data than a party joined with.

    kept: the digest of these; None where it has not joined.
    """
    if kept not in {None, digest}:
        raise GuardRefused(
            "This party joined with other data: rows, ids, columns or their order have "
            "changed since. Name the table as at first, --id-column and --columns too."
        )


def fingerprint(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of choices: values, and of objects that there was one."""
    plain = bool | int | float | str | None
    return {n: v if isinstance(v, plain) else _OBJECT for n, v in choices.items()}


def same_choices(
    kept: Mapping[str, Any], given: Mapping[str, Any], limits: Collection[str] = ()
) -> dict[str, Any]:
    """Return the choices of a party that continues: those that it began with.

    Values need not be given again; an object (a fitted transformer) must be. ``limits``
    are the names of those that say no more than whether an answer may leave: who was
    stopped by one may lift it.

    Raises GuardRefused if another value is given, or an object is missing.
    """
    again = {**kept, **fingerprint(given)}
    changed = {name for name, mark in again.items() if kept.get(name) != mark}
    changed.difference_update(limits)
    absent = {n for n, mark in kept.items() if mark == _OBJECT and n not in given}
    if changed | absent:
        named = ", ".join(sorted(changed | absent))
        raise GuardRefused(f"This party chose otherwise when it joined: {named}.")
    return {**kept, **given}

"""A party in a session: the loop from the invitation to the labels.

A killed party continues where it stopped, because every answer is stored byte for byte
before it is sent, and every request to the analyst can be repeated.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from clustering_protocols import engine
from clustering_protocols.catalogue import check_choice_names, limiting_choices
from clustering_protocols.common.errors import (
    AgreementMismatch,
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
from clustering_protocols.numerics.moments import OwnMoments, measure_moments
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import safety_number as number_of
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.row_selection import AdmittedRows, AdmittedTable
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.session_risks import SHOWN_TOGETHER, SUMS_LIMIT
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.states import SessionState
from party_sdk.admission.table_admission import (
    SlotFields,
    admitted_table_of,
    column_units_of,
    select_clustered,
    slot_fields_of,
)
from party_sdk.admission.table_files import TableSpec
from party_sdk.analyst_client.analyst import Analyst, end_error
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.disclosures.uses import Use
from party_sdk.home.addresses import are_same_analyst
from party_sdk.home.files import default_home
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.home.own_packages import use_home
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import read_policy
from party_sdk.party.asker import Asker
from party_sdk.party.leave import (
    announce_refusals,
    announce_resumed,
    announce_stops,
    check_not_stopped,
)
from party_sdk.party.notifications import (
    OwnReceivers,
    register_notifications,
    request_notifications,
)
from party_sdk.party.party_session import Document, Identity, PartySession
from party_sdk.party.roster import PeerVerifier
from party_sdk.party.rounds import OnProgress, Responder, SessionWatch
from party_sdk.tables import IdColumns, ReadOptions
from party_sdk.tables.mapping import TableMapping

# These import the libraries for tables, which are needed only when rows are read.
if TYPE_CHECKING:
    from party_sdk.results.new_rows import Comparison, NewRows
    from party_sdk.results.results import Result

_JOIN_ATTEMPTS: Final = 5
_OBJECT_MARK: Final = "an object"


class Party:
    """One party in one session.

    Call :meth:`join` with an invitation, then :meth:`run` with a table. Both calls can
    be repeated, also in another process. As a context manager it closes its
    connections.
    """

    def __init__(
        self,
        invitation: Invitation,
        stored: PartySession,
        analyst: Analyst,
        policy: Policy,
        choices: Mapping[str, Any],
        verifier: PeerVerifier,
    ) -> None:
        self.invitation, self.stored = invitation, stored
        self._identity = stored.load_identity()
        self._policy = policy.accept_risks(self._identity.accepted_risks)
        self._choices = choices
        self._analyst = analyst
        self._verifier = verifier

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
        offer: Offer | None = None,
    ) -> Party:
        """Fetch and check the terms of an invitation, and store the party.

        policy: what this party accepts; by default the ``policy.toml`` of the home.
        home: the folder of the stored state and the institution's identity; by default
            ``$COTERIE_HOME`` or ``~/.coterie``.
        entropy: 32 bytes from which this party's random numbers and identity are
            derived; by default they come from the operating system and from the home.
        choices: this party's own decisions, which the protocol's README lists; `dc`
            takes a fitted ``transformer`` and a ``rebuild_limit``.
        asker: the operator, who sees the members and approves contributions; by default
            nobody is asked. See :class:`~party_sdk.party.asker.Asker`.
        safety_number: the number that the other members see; the party stops if its own
            number differs.
        confirmed_with: the names of the members who read out the number; they count as
            known.
        accept_moved: whether a later invitation to the same slot may name another
            address of the analyst, to which this party's token is then sent.
        offer: the terms of the invitation, if the caller has already fetched them.

        Raises AgreementMismatch, RiskNotAccepted, GuardRefused, VersionMismatch or
        InvalidParameters before the analyst learns anything about the data.
        """
        parsed = Invitation.parse(invitation)
        home = home or default_home()
        stored = PartySession(home, parsed.session, parsed.slot)
        with ExitStack() as stack:
            analyst = stack.enter_context(analyst or connect(parsed.url))
            if policy is None:
                use_home(home)
                policy = read_policy(home)
            verifier = PeerVerifier(home, entropy, asker, safety_number, confirmed_with)
            if stored.exists:
                check_second_invitation(parsed, stored, accept_moved=accept_moved)
            else:
                check_inviter(parsed, stored, policy)
                if offer is None or offer.invitation != parsed:
                    offer = fetch_offer(parsed, analyst)
                accept_offer(offer, stored, policy, verifier)
            party = cls(parsed, stored, analyst, policy, choices or {}, verifier)
            stack.pop_all()  # the party closes the connection itself
        return party

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._analyst.close()

    @property
    def identity(self) -> Institution:
        """Return the institution that this party belongs to."""
        return self._verifier.institution

    @property
    def safety_number(self) -> str | None:
        """Return the number that the members compare; None until all have joined."""
        agreement = self.stored.agreement
        return None if agreement is None else number_of(agreement)

    def enrol(self, data: DataSource) -> AdmittedTable:
        """Take the slot by sending table sizes and public keys; return the admitted rows.

        The keys are derived from stored entropy, so that a join whose response was lost
        can be repeated with the same keys.
        """
        identity = self.stored.load_identity()
        if identity.token is None:  # once joined, the terms stay accepted
            self._policy.check_terms(self.terms)
        terms, rows_digest = self.terms, data_digest(data)
        admitted = admitted_table_of(terms, self.invitation.slot, data)
        self._policy.check_min_rows(terms, admitted.data.n_rows)
        check_choice_names(terms.protocol.name, self._choices)
        if identity.data_digest is not None:
            check_same_rows(identity.data_digest, rows_digest)
        self._check_history(admitted.data)
        if identity.token is not None:
            self._identity = identity
            limits = limiting_choices(terms.protocol.name)
            self._choices = merge_choices(self._identity.choices, self._choices, limits)
            return admitted
        member = identity.member or roster_entries.create_roster_line(
            self.invitation.secret,
            self._identity.terms.encode(),
            self.stored.slot,
            self._entropy,
            self._verifier.institution,
            n_rows=admitted.data.n_rows,
            n_columns=len(terms.columns(self.stored.slot, data.columns)),
        )
        update = {
            "member": member,
            "data_digest": rows_digest,
            "columns": tuple(data.columns),
            "choices": describe_choices(self._choices),
        }
        line = member.model_dump_json().encode()
        with self.stored.store.transaction():
            rows = admitted.record
            content = None if rows is None else rows.encode()
            self.stored.save_document(Document.ADMITTED_ROWS, content)
            self._save_identity(identity.model_copy(update=update))
            self.stored.ledger.log_joining(sha256(line).hexdigest())
        try:
            token = take_slot(self._analyst, self.invitation, self._entropy, member)
        except (GuardRefused, ShapeConflict):
            # The slot is still free, so the party may join with other data.
            self._save_identity(identity)
            raise
        self._save_identity(self._identity.model_copy(update={"token": token}))
        return admitted

    def _check_history(self, data: DataSource) -> None:
        terms, stored, history = self.terms, self.stored, self.stored.history
        use = Use.from_terms(terms, stored.agreement_id, stored.slot, data.columns)
        intersection = self._intersection
        if intersection is None and not use.discloses_anything:
            return
        rows, is_allowed = history.rows_of(data), self._allows_combination
        update: dict[str, Any] = {"epsilon": check_terms(terms).epsilon_per_person}
        if intersection is not None:
            history.check(intersection, rows, self._policy, is_agreed=is_allowed)
            update["sums"] = False  # the alignment determines the summed rows
        if use.discloses_anything:
            use = use.model_copy(update=update)
            history.check(use, rows, self._policy, is_agreed=is_allowed)

    @property
    def _intersection(self) -> Use | None:
        """Return what this party discloses by linking its rows; None if it does not."""
        return Use.intersection(self.terms, self.stored.agreement_id, self.stored.slot)

    @property
    def _allows_combination(self) -> bool:
        sources = (self._choices, self.stored.load_identity().choices)
        return any(bool(choices.get(SHOWN_TOGETHER)) for choices in sources)

    def run(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        columns: list[str] | None = None,
        mapping: TableMapping | None = None,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Take part in the session until there are labels, and return the result.

        table: as for :func:`party_sdk.tables.open_table`, or its return value.
        id_column: the column or columns of row ids, which never leave this machine.
        columns: the columns to cluster; by default all but the ids.
        mapping: translates the table into the terms' dictionary, and is then stored; by
            default the stored mapping.
        on_progress: called with the session's status whenever it changes.

        Raises CoterieError: the problem, with its remedy.
        """
        with self.stored.lock(), self._record_end():
            with announce_stops(self.stored, self._analyst):
                check_not_stopped(self.stored)
            with self.announce_refusals():
                data = self._open_table(table, id_column, columns, mapping)
                admitted = self.enrol(data)
            with announce_stops(self.stored, self._analyst):
                try:
                    outcome = self._run_rounds(admitted, on_progress)
                except Unauthenticated:
                    # An expired token is replaced by joining again. After a revocation the
                    # analyst refuses that, because it revoked the invitation as well.
                    self._save_identity(
                        self._identity.model_copy(update={"token": None})
                    )
                    outcome = self._run_rounds(self.enrol(data), on_progress)
        return self._result_of(outcome, data)

    def announce_refusals(self) -> AbstractContextManager[None]:
        """Inform the other members which check refuses a table, while the slot is free."""
        if self._identity.token is not None:
            return nullcontext()
        return announce_refusals(self._analyst, self.invitation.code)

    def _run_rounds(
        self, admitted: AdmittedTable, on_progress: OnProgress | None
    ) -> Outcome:
        if (result := self.stored.result) is not None:
            return self._conclude_result(result, admitted.data)
        analyst = self._analyst.as_party(self._identity.token or "")
        watch = SessionWatch(analyst, self.invitation.session, on_progress)
        announce_resumed(self.stored, self._analyst, status := watch.fetch_status())
        receivers = OwnReceivers(analyst, self.invitation.session)
        problems = register_notifications(self.stored, receivers)
        self._identity = self.stored.load_identity()
        for address, reason in problems.items():
            if self._verifier.asker is not None:
                self._verifier.asker.show_notes({f"{address} is not notified": reason})
        party = self._build_engine(self._await_agreement(analyst, watch, status.state))
        if (use := self._intersection) is not None:
            history = self.stored.history
            rows, is_allowed = history.rows_of(admitted.data), self._allows_combination
            history.record(use, rows, self._policy, is_agreed=is_allowed)
        rounds = Responder(
            stored=self.stored,
            analyst=analyst,
            terms=self.terms,
            policy=replace(self._policy, sums_limit=self._sums_limit),
            asker=self._verifier.asker,
            allows_combination=self._allows_combination,
        )
        rounds.send_again(party)
        task: bytes | None = None
        while True:
            watch.report_status(busy=task is not None)
            task = task or watch.fetch_task()
            if task is not None:
                task = rounds.answer_and_await(party, task, admitted.data)
            elif watch.fetch_status().state is SessionState.COMPLETED:
                break
        result = analyst.result(self.invitation.session)
        outcome = self._conclude_result(result, admitted.data)
        if outcome.predict is not None:  # stored before the result
            self._save_moments(admitted.data)
        with self.stored.store.transaction():
            self.stored.save_document(Document.RESULT, result)  # checked above
            # Without entropy no message can be decrypted; reading the result needs no key.
            self._save_identity(self._identity.model_copy(update={"entropy": ""}))
        self.stored.store.erase_log()
        return outcome

    @contextmanager
    def _record_end(self) -> Iterator[None]:
        """Record how the session ended if it ends in this block, and raise the reason.

        Only the analyst can say that a session has ended, so the next run asks the
        analyst again.
        """
        if self._identity.ended:
            self._save_identity(self._identity.model_copy(update={"ended": ""}))
        try:
            yield
        except SessionOver as over:
            self._save_identity(self._identity.model_copy(update={"ended": over.state}))
            raise end_error(over.state, over.reason, over.detail) from None

    def request_notifications(self, addresses: Iterable[str]) -> None:
        """Request mail to addresses; :meth:`run` registers them once the party joined."""
        with self.stored.lock():
            request_notifications(self.stored, addresses)
            self._identity = self.stored.load_identity()

    def _await_agreement(
        self, analyst: Analyst, watch: SessionWatch, state: SessionState
    ) -> bytes:
        if (agreement := self.stored.agreement) is not None:
            self._verifier.verify_safety_number(agreement)
            return agreement
        while state is SessionState.RECRUITING:
            engine.import_party_roles(self.terms)
            watch.fetch_task()
            state = watch.fetch_status().state
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
        self._verifier.verify_members(agreement, self.invitation.slot, self._policy)
        self.stored.save_document(Document.AGREEMENT, agreement)
        return agreement

    def _save_identity(self, identity: Identity) -> None:
        self.stored.save_identity(identity)
        self._identity = identity

    # Data on this disk, which is read without the analyst

    @property
    def terms(self) -> Terms:
        """Return the terms that this party accepted."""
        return read_terms(self._identity.terms.encode())

    def _open_table(
        self,
        table: Any,
        id_column: IdColumns,
        columns: list[str] | None,
        mapping: TableMapping | None,
        *,
        store: bool = True,
    ) -> DataSource:
        if isinstance(table, DataSource):
            return table
        chosen_mapping = self.stored.mappings.choose_mapping(mapping, lambda _: False)
        options = ReadOptions(
            id_column=id_column, columns=columns, mapping=chosen_mapping
        )
        data = TableSpec(path=table, options=options).open(self.slot_fields)
        if store:
            self.save_mapping(chosen_mapping, data)
        return data

    def save_mapping(self, mapping: TableMapping | None, data: DataSource) -> None:
        """Store a mapping of this party's table, which is used from now on.

        data: the table as read with the mapping.

        Raises GuardRefused if the party joined with different data.
        """
        if mapping is None:
            return
        mappings, ledger = self.stored.mappings, self.stored.ledger
        if mapping != mappings.current_mapping():
            if self._identity.data_digest is not None:
                self.check_table(data)
            mappings.add(mapping)
        digest = mappings.digest(mapping)
        # An earlier process may have been killed before it logged the mapping.
        if ledger.mapping_digest != digest:
            ledger.log_mapping(mappings.version, digest)

    def check_table(self, data: DataSource) -> None:
        """Raise GuardRefused if a table is not the one with which this party joined."""
        check_same_rows(self._identity.data_digest, data_digest(data))

    @property
    def slot_fields(self) -> SlotFields:
        """Return the dictionary, preparation and match columns of this party's slot."""
        return slot_fields_of(self.terms, self.invitation.slot)

    def select_clustered(
        self, data: DataSource, labels: IntArray
    ) -> tuple[DataSource, IntArray]:
        """After the session, return the clustered columns of rows, with their labels.

        Rows that lack a required value are dropped, together with their labels.
        """
        memory = self.stored.load_state().after
        return select_clustered(self.terms, self.invitation.slot, memory, data, labels)

    def units(self, data: DataSource) -> FloatArray:
        """Return the divisor (m,) by which each clustered column is scaled."""
        memory = self.stored.load_state().after
        return column_units_of(self.terms, self.invitation.slot, memory, data)

    def result(
        self,
        table: Any = None,
        *,
        id_column: IdColumns = None,
        columns: list[str] | None = None,
        mapping: TableMapping | None = None,
    ) -> Result:
        """Return the stored result of a completed session.

        table, id_column, columns, mapping: as for :meth:`run`; the table with which the
            party joined, which provides the ids. Ids are not stored, so without the
            table rows are numbered in its order.

        Raises NotReady if there is no result yet. Raises GuardRefused if the table is a
        different one, or if its rows were reordered.
        """
        stored_result = self.stored.result
        if stored_result is None:
            raise NotReady("This party has no result yet: run it to the end.")
        data = None
        if table is not None:
            data = self._open_table(table, id_column, columns, mapping, store=False)
            self.check_table(data)
        return self._result_of(self._conclude_result(stored_result, None), data)

    def _result_of(self, outcome: Outcome, data: DataSource | None) -> Result:
        """Return an outcome as a result, with the ids of this party's rows.

        The result reads new tables in the same way as this party's own.
        """
        from party_sdk.results.results import Result

        dictionary, preparation, _ = self.slot_fields
        columns = self._identity.columns
        result = Result.of(outcome, data, columns, dictionary, preparation)
        mapping = self.stored.mappings.current_mapping()
        return replace(result, _compare=self._compare_new_rows, _mapping=mapping)

    def predict(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        agree: Callable[[str], bool] | None = None,
    ) -> NewRows:
        """Label new rows with the stored result; nothing is sent.

        table, id_column, agree: as for :meth:`Result.predict`.

        Raises CoterieError as :meth:`result` and :meth:`Result.predict` do.
        """
        return self.result().predict(table, id_column=id_column, agree=agree)

    def _save_moments(self, data: DataSource) -> None:
        if check_terms(self.terms).describes:
            return
        rows, _ = self.select_clustered(data, np.arange(data.n_rows, dtype=np.int64))
        self.stored.save_document(Document.MOMENTS, measure_moments(rows).encode())

    def _compare_new_rows(self, data: DataSource, sizes: IntArray) -> Comparison:
        """Compare new rows with the trained rows.

        sizes: int64 (k,); the number of the party's trained rows in each cluster.

        Raises NotReady if no summary of the trained rows is stored. Raises InvalidData
        if every row lacks a required value.
        """
        from party_sdk.results.new_rows import Comparison

        trained = self.stored.load_document(Document.MOMENTS)
        if trained is None:
            raise NotReady("This home has no summary of the trained rows.")
        numbers = np.arange(data.n_rows, dtype=np.int64)
        rows, numbers = self.select_clustered(data, numbers)
        return Comparison(
            terms=self.terms,
            slot=self.invitation.slot,
            trained=OwnMoments.decode(trained),
            sizes=sizes,
            table=data,
            rows=rows,
            numbers=numbers,
        )

    def _conclude_result(self, result: bytes, data: DataSource | None) -> Outcome:
        """Return the outcome of a result, in the order of the table.

        data: the admitted rows; None if the table is not available.
        """
        party = self._build_engine(self.stored.agreement or b"")
        last = self.stored.load_state()
        outcome = party.conclude(
            last.journal,
            last.after,
            result,
            data,
            acknowledged=self.stored.ledger.has_receipt(last.round_key),
        )
        member = self._identity.member
        if member is not None and len(outcome.labels) != member.n_rows:
            raise InvalidArray(f"{len(outcome.labels)} labels, {member.n_rows} rows.")
        return self._restore_row_order(outcome)

    def _restore_row_order(self, outcome: Outcome) -> Outcome:
        """Reorder an outcome like the table, unless rows were admitted in that order."""
        admitted = self.stored.load_document(Document.ADMITTED_ROWS)
        return (
            outcome
            if admitted is None
            else AdmittedRows.decode(admitted).put_back(outcome)
        )

    def early_outcomes(self) -> list[Outcome | None]:
        """Return the outcomes of single runs while the session has no result yet.

        Each outcome is in the order of the table. The outcome is None for a run that is
        not finished, or whose labels come with the result.
        """
        party = self._build_engine(self.stored.agreement or b"")
        last = self.stored.load_state()
        outcomes = party.early_outcomes(last.journal, last.after)
        return [None if o is None else self._restore_row_order(o) for o in outcomes]

    def _build_engine(self, agreement: bytes) -> engine.PartyEngine:
        return engine.PartyEngine(
            agreement=agreement,
            slot=self.invitation.slot,
            entropy=self._entropy,
            choices={**self._choices, SUMS_LIMIT: self._sums_limit},
            engine=LocalEngine(os.cpu_count() or 1),
        )

    @property
    def _sums_limit(self) -> float:
        return float(self._choices.get(SUMS_LIMIT, self._policy.sums_limit))

    @property
    def _entropy(self) -> bytes:
        return bytes.fromhex(self._identity.entropy)


# Joining


def accept_offer(
    offer: Offer, stored: PartySession, policy: Policy, verifier: PeerVerifier
) -> None:
    """Check an offer against its invitation and the policy, and store the party."""
    if digest(offer.text) != offer.invitation.terms:
        raise AgreementMismatch(
            "The offer's terms differ from those that the coordinator signed."
        )
    policy.check_terms(offer.terms)
    verifier.check_seat(offer.terms, offer.invitation.slot)
    drawn_entropy = verifier.entropy or secrets.token_bytes(32)
    identity = Identity(
        invitation=str(offer.invitation),
        entropy=drawn_entropy.hex(),
        terms=offer.text.decode(),
        accepted_risks=tuple(sorted(offer.terms.risks)),  # the policy accepts all
    )
    with stored.lock():
        if not stored.exists:  # another process may have stored it first
            stored.accept_terms(identity)


def check_second_invitation(
    invitation: Invitation, stored: PartySession, *, accept_moved: bool
) -> None:
    """Raise GuardRefused if an invitation contradicts the first; store its new address."""
    identity = stored.load_identity()
    first = Invitation.parse(identity.invitation)
    if invitation.secret != first.secret:
        raise GuardRefused(
            "This party joined with another invitation to this session and slot, with "
            "another session secret: the new one is not from the same coordinator. If "
            "it is for another session with the same id, take part from another home "
            "(--home), or 'coterie party forget' the earlier one."
        )
    if (invitation.terms, invitation.coordinator) != (first.terms, first.coordinator):
        raise GuardRefused("This invitation's terms differ from the accepted ones.")
    if are_same_analyst(invitation.url, first.url):
        return
    if not accept_moved:
        raise GuardRefused(
            f"This party joined at {first.url}; this invitation names {invitation.url}. Its "
            "token is not sent there. If the coordinator confirms that the analyst has "
            "moved, run 'coterie party run --moved', or pass accept_moved=True."
        )
    with stored.lock():
        stored.save_identity(
            identity.model_copy(update={"invitation": str(invitation)})
        )


def take_slot(
    analyst: Analyst, parsed: Invitation, entropy: bytes, member: Member
) -> str:
    """Join the session with a roster entry, and return the token.

    The proof includes the number of earlier joins, so a new proof is needed when a join
    is repeated after its response was lost.

    Raises KeyNotAuthentic if the analyst rejects a proof with the current number of
    joins. Raises Unavailable if others keep joining the slot.
    """
    for _ in range(_JOIN_ATTEMPTS):
        joins = analyst.preview(parsed.code).joins
        proof = roster_entries.sign_join(
            entropy, parsed.session, member, parsed.code, joins
        )
        try:
            return analyst.join(parsed.code, member, proof)
        except KeyNotAuthentic:
            if analyst.preview(parsed.code).joins == joins:
                raise
    raise Unavailable(
        "Others keep joining this slot.",
        remedy="Find out who else runs a command for this slot, then run only yours.",
    )


class Offer(NamedTuple):
    """A parsed invitation, with the exact text of its terms and the parsed terms."""

    invitation: Invitation
    text: bytes
    terms: Terms


def check_inviter(invitation: Invitation, stored: PartySession, policy: Policy) -> None:
    """Check who invites before the analyst is contacted, unless the party has joined.

    Raises GuardRefused if the policy does not list the analyst or the coordinator.
    """
    if not stored.has_joined:
        trusted = TrustedInstitutions(stored.home).keys_by_name()
        policy.check_inviter(invitation.url, invitation.coordinator, trusted)


def find_stored_offer(invitation: Invitation, stored: PartySession) -> Offer | None:
    """Return the terms of an invitation if this home stores them, otherwise None."""
    if not stored.exists:
        return None
    text = stored.load_identity().terms.encode()
    if digest(text) != invitation.terms:
        return None
    return Offer(invitation, text, read_terms(text))


def fetch_offer(invitation: Invitation, analyst: Analyst) -> Offer:
    """Return the terms of an invitation from the analyst, who reads only its code.

    Raises AgreementMismatch if these are not the terms that the coordinator signed for
    this session and slot. Raises CoterieError if the analyst cannot be reached or
    refuses the invitation.
    """
    preview = analyst.preview(invitation.code)
    text = preview.terms.encode()
    if digest(text) != invitation.terms:
        raise AgreementMismatch(
            "The analyst's terms differ from those that the coordinator signed."
        )
    terms = read_terms(text)
    if terms.identities.coordinator != invitation.coordinator:
        raise AgreementMismatch(
            "The terms were not signed by the coordinator that they name."
        )
    if (terms.session, preview.slot) != (invitation.session, invitation.slot):
        raise AgreementMismatch("The analyst previews a different session or slot.")
    return Offer(invitation, text, terms)


# Data and choices that must not change when a party continues


def data_digest(data: DataSource) -> str:
    """Return the SHA-256 (hex) of columns, ids and rows, in their order."""
    digest = sha256(length_prefixed(*data.columns))
    digest.update(length_prefixed(*(data.ids or ())))
    for batch in data.batches():
        # NaN has several bit patterns.
        rows = np.where(np.isnan(batch), np.nan, batch)
        digest.update(np.ascontiguousarray(rows).reshape(-1).data)
    return digest.hexdigest()


def check_same_rows(joined_digest: str | None, digest: str) -> None:
    """Raise GuardRefused if the data are not those with which a party joined."""
    if joined_digest != digest:
        raise GuardRefused(
            "This party joined with other data: rows, ids, columns or their order have "
            "changed since. Use the same table, --id-column and --columns as then."
        )


def describe_choices(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices in their stored form, in which a mark replaces each object."""
    plain = bool | int | float | str | None
    return {n: v if isinstance(v, plain) else _OBJECT_MARK for n, v in choices.items()}


def merge_choices(
    stored: Mapping[str, Any], choices: Mapping[str, Any], limits: Collection[str]
) -> dict[str, Any]:
    """Return the choices of a party that continues, which must equal its earlier ones.

    Values may be omitted. Objects, such as a fitted transformer, must be passed again.

    limits: the names of choices that only determine whether an answer may be sent; they
        may change.

    Raises GuardRefused if a value differs, or if an object is missing.
    """
    marks = {**stored, **describe_choices(choices)}
    changed = {name for name, mark in marks.items() if stored.get(name) != mark}
    changed.difference_update(limits)
    absent = {
        n for n, mark in stored.items() if mark == _OBJECT_MARK and n not in choices
    }
    if changed | absent:
        names = ", ".join(sorted(changed | absent))
        raise GuardRefused(f"This party joined with different choices: {names}.")
    return {**stored, **choices}

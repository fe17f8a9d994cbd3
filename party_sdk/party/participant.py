"""A party in a session: the loop from invitation to labels.

Killed anywhere, it continues where it was: what it sent is on its disk, byte for byte,
and everything that it asks of the analyst may be asked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from clustering_protocols import engine
from clustering_protocols.catalogue import check_choices, limits_of
from clustering_protocols.common.errors import (
    GuardRefused,
    NotReady,
    SessionOver,
    ShapeConflict,
    Unauthenticated,
)
from clustering_protocols.contract import Outcome
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import safety_number as number_of
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.row_selection import Arrival
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.session_risks import SHOWN_TOGETHER
from clustering_protocols.wire.answers import Preview
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.analyst import Analyst, end_of
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.disclosures.uses import Use
from party_sdk.home.files import default_home
from party_sdk.home.own_packages import use_home
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import read_policy
from party_sdk.party.join import check_again, first_time, take_slot
from party_sdk.party.leave import check_staying, go_on, telling_refusals, telling_stops
from party_sdk.party.notifications import OwnReceivers, leave_addresses, name_addresses
from party_sdk.party.party_at_home import PartyAtHome
from party_sdk.party.party_session import Document, Identity, PartySession
from party_sdk.party.resume_checks import (
    check_same_rows,
    data_digest,
    fingerprint,
    same_choices,
)
from party_sdk.party.roster import Meeting, OnRoster
from party_sdk.party.rounds import Confirm, OnNotes, Oversight, Responder
from party_sdk.party.watch import OnProgress, SessionWatch

# Libraries of tables are imported when rows are read: who joins has not come to that
if TYPE_CHECKING:
    from party_sdk.results.results import Result
    from party_sdk.tables import IdColumns
    from party_sdk.tables.mapping import TableMapping


class Party(PartyAtHome):
    """One party of one session.

    Use :meth:`join` with an invitation, then :meth:`run` with a table. Both may be
    repeated, in another process too. As a context manager it closes its connections.
    """

    def __init__(
        self,
        invitation: Invitation,
        folder: PartySession,
        analyst: Analyst,
        policy: Policy,
        preview: Preview | None,
        choices: Mapping[str, Any],
        oversight: Oversight,
        meeting: Meeting,
    ) -> None:
        super().__init__(invitation, folder, policy, choices)
        self.preview = preview
        self._analyst = analyst
        self._oversight = oversight
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
        on_notes: OnNotes | None = None,
        confirm: Confirm | None = None,
        on_roster: OnRoster | None = None,
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
        on_notes: called with what a protocol wants the operator to read before an
            answer is sent.
        confirm: called with everything in a contribution before it is sent; False stops
            it.
        on_roster: called with who takes part, and whether enough of them are known,
            before anything of the data leaves; True where each of the other members has
            read the safety number to the operator.
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
        folder = PartySession(home, parsed.session, parsed.slot)
        if folder.exists:
            check_again(parsed, folder, accept_moved=accept_moved)
        analyst = analyst or connect(parsed.url)
        if policy is None:
            use_home(home)
            policy = read_policy(home)
        meeting = Meeting(home, entropy, on_roster, safety_number, confirmed_with)
        preview = None
        if not folder.exists:
            preview = first_time(parsed, folder, analyst, policy, meeting)
        oversight = Oversight(on_notes=on_notes, confirm=confirm)
        choices = choices or {}
        return cls(
            parsed, folder, analyst, policy, preview, choices, oversight, meeting
        )

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
        agreement = self.folder.agreement
        return None if agreement is None else number_of(agreement)

    def enrol(self, data: DataSource) -> Arrival:
        """Take the slot: tell the analyst sizes and public keys; return what arrives.

        The keys follow from entropy that is on disk already, so that a join whose
        response was lost is repeated with the same keys.
        """
        known = self.folder.load_identity()
        if known.token is None:  # what was accepted then is accepted
            self._policy.check_terms(self.terms)
        arrival, digest = self._arrival(data), data_digest(data)
        self._check_table(arrival, digest)
        if known.token is not None:
            self._identity = known
            limits = limits_of(self.terms.protocol.name)
            self._choices = same_choices(self._identity.choices, self._choices, limits)
            return arrival
        member = known.member or self._enter_roster(data, arrival)
        update = {
            "member": member,
            "data_digest": digest,
            "columns": tuple(data.columns),
            "choices": fingerprint(self._choices),
        }
        line = member.model_dump_json().encode()
        with self.folder.store.transaction():
            rows = arrival.arrived
            content = None if rows is None else rows.encode()
            self.folder.save(Document.ADMITTED_ROWS, content)
            self._remember(known.model_copy(update=update))
            self.folder.ledger.note_joining(sha256(line).hexdigest())
        try:
            token = take_slot(self._analyst, self.invitation, self._entropy, member)
        except (GuardRefused, ShapeConflict):
            # the slot is free still: other data may come
            self._remember(known)
            raise
        self._remember(self._identity.model_copy(update={"token": token}))
        return arrival

    def _check_table(self, arrival: Arrival, digest: str) -> None:
        """Refuse rows that may not take part, or are not those that joined."""
        terms, data = self.terms, arrival.data
        self._policy.check_rows(terms, data.n_rows)
        check_choices(terms.protocol.name, self._choices)
        check_same_rows(self.folder.load_identity().data_digest, digest)
        self._check_history(data)

    def _check_history(self, data: DataSource) -> None:
        """Refuse rows that earlier sessions have shown too much of; linked ones later."""
        terms, folder, history = self.terms, self.folder, self.folder.history
        use = Use.of(terms, folder.attempt, folder.slot, data.columns)
        if not use.shows:
            return
        rows, cost = history.rows_of(data), check_terms(terms).epsilon_per_person
        update: dict[str, Any] = {"epsilon": cost}
        if self._intersection is not None:
            history.check(self._intersection, rows, self._policy)
            update["sums"] = False  # who is in them follows from the ids
        use, allowed = use.model_copy(update=update), self._allows_shown_together
        history.check(use, rows, self._policy, allowed=allowed)

    def _enter_roster(self, data: DataSource, arrival: Arrival) -> Member:
        """Return this party's line of the roster."""
        return roster_entries.enrol(
            self.invitation.secret,
            self._identity.terms.encode(),
            self.folder.slot,
            self._entropy,
            self._meeting.institution,
            n_rows=arrival.data.n_rows,
            n_columns=len(self.terms.columns(self.folder.slot, data.columns)),
        )

    @property
    def _intersection(self) -> Use | None:
        """Return what blinded ids show of the rows; None where none leave."""
        return Use.intersection(self.terms, self.folder.attempt, self.folder.slot)

    @property
    def _allows_shown_together(self) -> bool:
        """Return whether the party allows what sessions show together."""
        given = (self._choices, self.folder.load_identity().choices)
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
        with self.folder.lock(), self._noting_the_end():
            with telling_stops(self.folder, self._analyst):
                check_staying(self.folder)
            with self.tell_refusals():
                data = self._open(table, id_column, columns, mapping)
                arrival = self.enrol(data)
            try:
                with telling_stops(self.folder, self._analyst):
                    outcome = self._to_the_end(arrival, on_progress)
            except Unauthenticated:
                # the token has expired, and the key gets a new one; where it was
                # revoked, so was the invitation, and the analyst says so
                self._remember(self._identity.model_copy(update={"token": None}))
                arrival = self.enrol(data)
                with telling_stops(self.folder, self._analyst):
                    outcome = self._to_the_end(arrival, on_progress)
        found = self._result_of(outcome, data)
        return self._complete(found)

    def tell_refusals(self) -> AbstractContextManager[None]:
        """Tell the others which check refuses the table, as long as the slot is free."""
        if self._identity.token is not None:
            return nullcontext()
        return telling_refusals(self._analyst, self.invitation.code)

    def _to_the_end(self, arrival: Arrival, on_progress: OnProgress | None) -> Outcome:
        kept = self.folder.result
        if kept is not None:
            return self._conclude(kept, arrival.data)
        analyst = self._analyst.as_party(self._identity.token or "")
        watch = SessionWatch(analyst, self.invitation.session, on_progress)
        go_on(self.folder, self._analyst, watch.look())
        receivers = OwnReceivers(analyst, self.invitation.session)
        refused = leave_addresses(self.folder, receivers)
        self._identity = self.folder.load_identity()
        for address, reason in refused.items():
            self._oversight.note({f"{address} is not told": reason})
        agreement = self._agreement(analyst, watch)
        party = self._engine(agreement)
        if (shown := self._intersection) is not None:
            history = self.folder.history
            history.record(shown, history.rows_of(arrival.data), self._policy)
        rounds = Responder(
            folder=self.folder,
            analyst=analyst,
            terms=self.terms,
            policy=replace(self._policy, sums_limit=self._sums_limit),
            oversight=self._oversight,
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
        with self.folder.store.transaction():
            self.folder.save(Document.RESULT, result)  # not before it has been checked
            # what was sent and got can no longer be opened; reading the result takes no
            # key
            self._remember(self._identity.model_copy(update={"entropy": ""}))
        self.folder.store.erase_log()
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
        with self.folder.lock():
            name_addresses(self.folder, addresses)
            self._identity = self.folder.load_identity()

    def _agreement(self, analyst: Analyst, watch: SessionWatch) -> bytes:
        """Return the agreement, once all have joined, after checking it."""
        agreement = self.folder.agreement
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
        self.folder.save(Document.AGREEMENT, agreement)
        return agreement

    def _remember(self, identity: Identity) -> None:
        self.folder.save_identity(identity)
        self._identity = identity

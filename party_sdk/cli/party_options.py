"""Options of `coterie party …` that belong together, gathered into one argument each."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.wire.states import SlotState
from party_sdk._files import default_home
from party_sdk.cli.options import (
    ca_option,
    entropy_option,
    home_option,
    http_option,
    read_entropy,
)
from party_sdk.cli.output import roster_lines, say, show_notes
from party_sdk.cli.waiting import show_outage, show_resumed, show_silence
from party_sdk.policy import Policy

if TYPE_CHECKING:
    from clustering_protocols.proofs import SignedLog
    from clustering_protocols.secrecy.identities import Institution
    from clustering_protocols.terms import Terms
    from coterie_pages.models import RunReport
    from party_sdk._transport import Transport
    from party_sdk.cli.table_options import GivenTable
    from party_sdk.memory import PartyFolder
    from party_sdk.participant import Party
    from party_sdk.receivers import OwnReceivers
    from party_sdk.responder import Confirm
    from party_sdk.roster import Roster

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyOptions:
    """Where this party keeps its memory, and how it reaches the analyst.

    ``carried`` is the file that stands for the analyst on a machine without network.
    """

    home: Path
    ca_file: Path | None
    allow_http: bool
    entropy_file: Path | None = None
    moved: bool = False
    safety_number: str | None = None
    confirmed_with: tuple[str, ...] = ()
    carried: Transport | None = None
    patience: float = 300.0

    @property
    def words(self) -> list[str]:
        """Return the options that another command of this party needs as well."""
        home = [] if self.home == default_home() else ["--home", str(self.home)]
        trusted = [] if self.ca_file is None else ["--ca-file", str(self.ca_file)]
        return [*home, *trusted, *["--allow-http"] * self.allow_http]

    def join(
        self,
        invitation: str,
        policy: Policy,
        choices: Mapping[str, Any] | None = None,
        confirm: Confirm | None = None,
    ) -> Party:
        """Return the party of an invitation."""
        from party_sdk.invitations import Invitation
        from party_sdk.participant import Party

        return Party.join(
            invitation,
            policy=policy,
            home=self.home,
            entropy=read_entropy(self.entropy_file),
            transport=self.transport(Invitation.parse(invitation).url),
            choices=choices,
            on_notes=show_notes,
            confirm=confirm,
            on_roster=_meet,
            safety_number=self.safety_number,
            confirmed_with=self.confirmed_with,
            accept_moved=self.moved,
        )

    def offered(self, invitation: str) -> tuple[Terms, str]:
        """Return the terms of an invitation, and its slot."""
        from clustering_protocols.terms import read_terms
        from party_sdk.invitations import Invitation

        text = self.offered_text(invitation)
        return read_terms(text), Invitation.parse(invitation).slot

    def offered_text(self, invitation: str) -> bytes:
        """Return the exact text of an invitation's terms; as kept here, once joined."""
        from party_sdk.invitations import Invitation
        from party_sdk.offers import offered_text

        parsed = Invitation.parse(invitation)
        return offered_text(parsed, self.home, lambda: self.transport(parsed.url))

    def accepted_before(self, invitation: str, policy: Policy) -> tuple[Policy, bool]:
        """Return the policy with what ``join`` accepted; whether the slot is taken."""
        from party_sdk.invitations import Invitation

        parsed = Invitation.parse(invitation)
        folder = self.folder(parsed.session, parsed.slot)
        if not folder.exists:
            return policy, False
        kept = folder.load_identity()
        return policy.accepting(kept.accepted_risks), kept.token is not None

    def institution(self) -> Institution | None:
        """Return who this party is; None where no identity was made yet."""
        from clustering_protocols.secrecy.identities import Institution
        from party_sdk.offers import own_institution

        entropy = read_entropy(self.entropy_file)
        return (
            own_institution(self.home)
            if entropy is None
            else Institution.drawn(entropy)
        )

    def decline(self, invitation: str, check: str | None, reason: str) -> None:
        """Tell the coordinator which check refused, or why the party declines."""
        from party_sdk.client import AnalystClient
        from party_sdk.invitations import Invitation

        parsed = Invitation.parse(invitation)
        state = SlotState.REFUSED if check else SlotState.DECLINED
        with self.transport(parsed.url) as transport:
            AnalystClient(transport).decline(parsed.code, state, check or reason)

    def leave(self, session_id: str, slot: str, reason: str) -> bool:
        """Stop a party for good; return whether the others are told."""
        from party_sdk.invitations import Invitation
        from party_sdk.leaving import leave

        folder = self.folder(session_id, slot)
        url = Invitation.parse(folder.load_identity().invitation).url
        with self.transport(url) as transport:
            return leave(folder, transport, reason)

    @contextmanager
    def receivers(self, session_id: str, slot: str) -> Iterator[OwnReceivers]:
        """Open the addresses at which a party is told."""
        from party_sdk.invitations import Invitation
        from party_sdk.receivers import OwnReceivers

        folder = self.folder(session_id, slot)
        url = Invitation.parse(folder.load_identity().invitation).url
        with self.transport(url) as transport:
            yield OwnReceivers.of_party(folder, transport)

    def folder(self, session_id: str, slot: str) -> PartyFolder:
        """Return what is kept of a session on this disk."""
        from party_sdk.memory import PartyFolder

        return PartyFolder(self.home, session_id, slot)

    def kept(self, session_id: str, slot: str) -> PartyFolder:
        """Return the same, or what outlived it where it was forgotten.

        Raises
        ------
        NotReady
            If nothing is kept.
        """
        folder = self.folder(session_id, slot)
        found = folder if folder.exists else folder.forgotten()
        if found is None:
            folder.load_identity()  # which says so
            return folder
        return found

    def one_of(self, named: str, slot: str | None) -> PartyFolder:
        """Return what is kept of an invitation, or of a session and a slot.

        Raises
        ------
        InvalidParameters
            If this home sat at several slots of the session, and none is named.
        """
        from clustering_protocols.errors import InvalidParameters
        from party_sdk.invitations import Invitation

        if "#" in named:
            parsed = Invitation.parse(named)
            return self.kept(parsed.session, parsed.slot)
        sat = sorted(path.name for path in (self.home / "parties" / named).glob("*"))
        if slot is None and len(sat) > 1:
            raise InvalidParameters(f"Name one of the slots: {', '.join(sat)}.")
        return self.kept(named, slot or (sat[0] if sat else "?"))

    def report(self, folder: PartyFolder, rows: GivenTable | None) -> RunReport:
        """Return the report of a party that is kept here."""
        from party_sdk.run_reports import run_report

        with self.rejoin(folder.session, folder.slot, Policy()) as member:
            columns = folder.load_identity().columns
            data = None if rows is None else rows.open(member.agreed, columns)
            return run_report(member, self.home, data=data)

    def last_report(self, folder: PartyFolder) -> bytes | None:
        """Return what outlives a party; None where nothing can be said of it."""
        from clustering_protocols.errors import CoterieError

        with suppress(CoterieError):  # what cannot be read has to go all the same
            return self.report(folder, None).model_dump_json().encode()
        return None

    def signed_ledger(self, folder: PartyFolder) -> SignedLog:
        """Return what left a party, signed by the institution that joined."""
        from clustering_protocols.errors import NotReady
        from clustering_protocols.proofs import sign_ledger
        from party_sdk.roster import Meeting

        own = Meeting(self.home, read_entropy(self.entropy_file)).institution
        member = folder.member
        if member is None or member.identity != own.key:
            raise NotReady("This party joined as another institution than this home's.")
        return sign_ledger(own, folder.session, folder.slot, folder.ledger.lines)

    def named(self, key: str) -> str:
        """Return whose key this is, as far as it is known here."""
        from clustering_protocols.secrecy.identities import fingerprint
        from party_sdk.identities import Acquaintances

        name = Acquaintances(self.home).name_of(key) or "a key that you do not know"
        return f"{name}: {fingerprint(key)}"

    def roster(self, session_id: str, slot: str) -> Roster | None:
        """Return who takes part, if that has been agreed upon."""
        from party_sdk.identities import Acquaintances
        from party_sdk.roster import Roster

        agreement = self.kept(session_id, slot).load_agreement()
        if agreement is None:
            return None
        return Roster.of(agreement, Acquaintances(self.home), slot)

    def rejoin(
        self,
        session_id: str,
        slot: str,
        policy: Policy,
        choices: Mapping[str, Any] | None = None,
        confirm: Confirm | None = None,
    ) -> Party:
        """Return the party that is kept on this disk."""
        kept = self.folder(session_id, slot).load_identity()
        return self.join(kept.invitation, policy, choices, confirm)

    def asking(self, invitation: str, *, everything: bool) -> Confirm | None:
        """Return what asks the operator before contributions to a session.

        ``everything``: before each. Otherwise, in a terminal, before those to which the
        operator has to agree; without a terminal such a contribution stops the party.
        """
        from party_sdk.cli.confirming import Asking
        from party_sdk.invitations import Invitation

        if not everything and not sys.stdin.isatty():
            return None
        terms, slot = self.offered(invitation)
        session = Invitation.parse(invitation).session
        return Asking(terms, None if everything else self.folder(session, slot))

    def transport(self, url: str) -> Transport:
        """Return the way to an analyst: a file, where one was carried here."""
        if self.carried is not None:
            return self.carried
        from party_sdk._transport import Transport

        return Transport(
            url,
            patience=self.patience,
            ca_file=self.ca_file,
            allow_http=self.allow_http,
            on_outage=show_outage,
            on_resumed=show_resumed,
            on_silence=show_silence,
        )


def _meet(roster: Roster, *, is_known: bool) -> bool:
    """Show who takes part; where too few are known, ask whether numbers were compared."""
    for line in roster_lines(roster):
        say(line, err=True)
    if is_known or not sys.stdin.isatty():
        return False
    question = "Did each of these members read you this safety number?"
    return click.confirm(question, err=True)


_number_option = click.option(
    "--confirm-safety-number",
    "safety_number",
    metavar="DIGITS",
    help="The safety number as the other members read it to you: another one stops the "
    "run before anything of your data is sent.",
)
_confirmed_option = click.option(
    "--confirmed-with",
    "confirmed_with",
    multiple=True,
    metavar="NAME",
    help="A member that read you the safety number itself; may be given several times. "
    "It counts as known, as if you had its card.",
)
_patience_option = click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="For how many seconds to try again while the analyst cannot be reached.",
)
_moved_option = click.option(
    "--moved",
    is_flag=True,
    help="The invitation names another address than the first one to this slot, and the "
    "coordinator confirmed that the analyst has moved there.",
)


def here_options(
    *, invited: bool = False, sends: bool = False, signs: bool = False
) -> Callable[[Command], Command]:
    """Add the options of :class:`PartyOptions`; the command takes ``here``.

    ``invited``: those too of a command that is given an invitation; ``sends``: of one
    that sends what comes of the data; ``signs``: of one that signs for the institution.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathered(
            *args: Any,
            home: Path | None,
            ca_file: Path | None,
            allow_http: bool,
            entropy_file: Path | None = None,
            moved: bool = False,
            safety_number: str | None = None,
            confirmed_with: tuple[str, ...] = (),
            patience: float = 300.0,
            **rest: Any,
        ) -> Any:
            here = PartyOptions(
                home=home or default_home(),
                ca_file=ca_file,
                allow_http=allow_http,
                entropy_file=entropy_file,
                moved=moved,
                safety_number=safety_number,
                confirmed_with=confirmed_with,
                patience=patience,
            )
            return command(*args, here=here, **rest)

        wrapped = home_option(ca_option(http_option(gathered)))
        if sends:
            wrapped = _number_option(_confirmed_option(wrapped))
            wrapped = _patience_option(wrapped)
        wrapped = _moved_option(wrapped) if invited else wrapped
        return entropy_option(wrapped) if invited or signs else wrapped

    return decorate

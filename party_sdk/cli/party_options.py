"""Options of `coterie party …` that belong together, gathered into one argument each."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
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
    read_values,
)
from party_sdk.cli.output import roster_lines, say, show_notes
from party_sdk.policy import Policy

if TYPE_CHECKING:
    from clustering_protocols.proofs import SignedLog
    from clustering_protocols.terms import Terms
    from party_sdk._transport import Transport
    from party_sdk.memory import PartyFolder
    from party_sdk.participant import Party
    from party_sdk.responder import Confirm
    from party_sdk.roster import Roster

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyOptions:
    """Where this party keeps its memory, and how it reaches the analyst."""

    home: Path
    ca_file: Path | None
    allow_http: bool
    entropy_file: Path | None = None
    moved: bool = False
    safety_number: str | None = None

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
            transport=self._transport(Invitation.parse(invitation).url),
            choices=choices,
            on_notes=show_notes,
            confirm=confirm,
            on_roster=_meet,
            safety_number=self.safety_number,
            accept_moved=self.moved,
        )

    def offered(self, invitation: str) -> tuple[Terms, str]:
        """Return the terms of an invitation, and its slot."""
        from party_sdk.client import AnalystClient
        from party_sdk.invitations import Invitation
        from party_sdk.joining import signed_terms

        parsed = Invitation.parse(invitation)
        with self._transport(parsed.url) as transport:
            preview = AnalystClient(transport).preview(parsed.code)
        return signed_terms(parsed, preview), parsed.slot

    def decline(self, invitation: str, check: str | None, reason: str) -> None:
        """Tell the coordinator which check refused, or why the party declines."""
        from party_sdk.client import AnalystClient
        from party_sdk.invitations import Invitation

        parsed = Invitation.parse(invitation)
        state = SlotState.REFUSED if check else SlotState.DECLINED
        with self._transport(parsed.url) as transport:
            AnalystClient(transport).decline(parsed.code, state, check or reason)

    def folder(self, session_id: str, slot: str) -> PartyFolder:
        """Return what is kept of a session on this disk."""
        from party_sdk.memory import PartyFolder

        return PartyFolder(self.home, session_id, slot)

    def signed_ledger(self, folder: PartyFolder) -> SignedLog:
        """Return what left a party, signed by the institution that joined."""
        from clustering_protocols.errors import NotReady
        from clustering_protocols.proofs import sign_ledger
        from party_sdk.roster import Meeting

        own = Meeting(self.home, read_entropy(self.entropy_file)).institution
        member = folder.load_identity().member
        if member is None or member.identity != own.key:
            raise NotReady("This party joined as another institution than this home's.")
        session, slot = folder.path.parts[-2:]
        return sign_ledger(own, session, slot, folder.ledger.lines)

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

        folder = self.folder(session_id, slot)
        folder.load_identity()
        agreement = folder.load_agreement()
        if agreement is None:
            return None
        return Roster.of(agreement, Acquaintances(self.home), slot)

    def rejoin(
        self,
        session_id: str,
        slot: str,
        policy: Policy,
        choices: Mapping[str, Any] | None = None,
    ) -> Party:
        """Return the party that is kept on this disk."""
        kept = self.folder(session_id, slot).load_identity()
        return self.join(kept.invitation, policy, choices)

    def _transport(self, url: str) -> Transport:
        from party_sdk._transport import Transport

        return Transport(url, ca_file=self.ca_file, allow_http=self.allow_http)


def _meet(roster: Roster, *, is_known: bool) -> bool:
    """Show who takes part; where too few are known, ask whether numbers were compared."""
    for line in roster_lines(roster):
        say(line, err=True)
    if is_known or not sys.stdin.isatty():
        return False
    return click.confirm("Do all members read this safety number?", err=True)


_number_option = click.option(
    "--confirm-safety-number",
    "safety_number",
    metavar="DIGITS",
    help="The safety number as the other members read it to you: another one stops the "
    "run before anything of your data is sent.",
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
            **rest: Any,
        ) -> Any:
            here = PartyOptions(
                home=home or default_home(),
                ca_file=ca_file,
                allow_http=allow_http,
                entropy_file=entropy_file,
                moved=moved,
                safety_number=safety_number,
            )
            return command(*args, here=here, **rest)

        wrapped = home_option(ca_option(http_option(gathered)))
        wrapped = _number_option(wrapped) if sends else wrapped
        wrapped = _moved_option(wrapped) if invited else wrapped
        return entropy_option(wrapped) if invited or signs else wrapped

    return decorate


def policy_options(command: Command) -> Command:
    """Add the options of a :class:`Policy`; the command takes ``policy``."""

    @click.option(
        "--accept-risk",
        "accepted",
        multiple=True,
        metavar="CODE",
        help="A risk code that you have read and accept; may be given several times.",
    )
    @click.option(
        "--protocol",
        "protocols",
        multiple=True,
        help="Guard: a protocol to take part in; may be given several times. All by "
        "default.",
    )
    @click.option(
        "--minimum-rows",
        default=Policy().minimum_rows,
        show_default=True,
        help="Guard: fewest rows of this party.",
    )
    @click.option(
        "--ids-per-row",
        type=click.FloatRange(min=0),
        default=Policy().ids_per_row,
        show_default=True,
        help="Guard: most ids that another party of your row group may bring, for each "
        "of your rows.",
    )
    @click.option(
        "--least-known",
        type=click.IntRange(0),
        help="Guard: fewest other members whose cards you trusted, unless you compare the "
        "safety number. By default two, or all where there are fewer; none where you "
        "accepted house.open-slot.",
    )
    @click.option(
        "--epsilon-limit",
        type=click.FloatRange(min=0),
        help="Guard: largest ε that a session may cost each person; answers without "
        "noise cost an infinite one.",
    )
    @click.option(
        "--epsilon-total",
        type=click.FloatRange(min=0),
        help="Guard: largest ε over all sessions on the same table.",
    )
    @functools.wraps(command)
    def gathered(
        *args: Any,
        accepted: tuple[str, ...],
        protocols: tuple[str, ...],
        minimum_rows: int,
        ids_per_row: float,
        least_known: int | None,
        epsilon_limit: float | None,
        epsilon_total: float | None,
        **rest: Any,
    ) -> Any:
        policy = Policy(
            accepted_risks=frozenset(accepted),
            protocols=frozenset(protocols) or None,
            minimum_rows=minimum_rows,
            ids_per_row=ids_per_row,
            least_known=least_known,
            epsilon_limit=epsilon_limit,
            epsilon_total=epsilon_total,
        )
        return command(*args, policy=policy, **rest)

    return gathered


def choice_option(command: Command) -> Command:
    """Add what a party decides alone; the command takes ``choices``."""

    @click.option(
        "--choice",
        "given",
        multiple=True,
        metavar="NAME=VALUE",
        help="What this party decides alone, e.g. rebuild_limit=0.05 for dc.",
    )
    @functools.wraps(command)
    def gathered(*args: Any, given: tuple[str, ...], **rest: Any) -> Any:
        return command(*args, choices=read_values(given), **rest)

    return gathered


def read_invitation(
    context: click.Context, parameter: click.Parameter, value: str
) -> str:
    """Return an invitation as given, from @FILE, or from standard input for -."""
    del context, parameter
    if value == "-":
        return sys.stdin.readline().strip()
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise click.BadParameter(f"cannot read the file {value[1:]!r}.") from None


invitation_argument = click.argument("invitation", callback=read_invitation)

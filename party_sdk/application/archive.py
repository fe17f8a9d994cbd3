"""What a home keeps of its sessions: found again, reported, signed and forgotten."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clustering_protocols.common.errors import CoterieError, InvalidParameters, NotReady
from clustering_protocols.terms.signed_logs import SignedLog, sign_ledger
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.application.outputs import Rows
from party_sdk.home.identities import Acquaintances
from party_sdk.home.policy import Policy
from party_sdk.party.folder import PartyFolder
from party_sdk.party.roster import Meeting, Roster

# Reports are imported where they are read
if TYPE_CHECKING:
    from coterie_pages.models import RunReport
    from party_sdk.application.home import Home


@dataclass(frozen=True, slots=True)
class Archive:
    """The sessions of a home on its disk."""

    home: Home

    def find(self, session: str, slot: str) -> PartyFolder:
        """Return what is kept of a session, or what outlived it where it was forgotten.

        Raises NotReady if nothing is kept.
        """
        folder = self.home.folder(session, slot)
        found = folder if folder.exists else folder.forgotten()
        if found is None:
            folder.load_identity()  # which says so
            return folder
        return found

    def one_of(self, named: str, slot: str | None) -> PartyFolder:
        """Return what is kept of an invitation, or of a session and a slot.

        Raises InvalidParameters if this home sat at several slots of the session, and
            none is named.
        """
        if "#" in named:
            parsed = Invitation.parse(named)
            return self.find(parsed.session, parsed.slot)
        sat = sorted(
            path.name for path in (self.home.path / "parties" / named).glob("*")
        )
        if slot is None and len(sat) > 1:
            raise InvalidParameters(f"Name one of the slots: {', '.join(sat)}.")
        return self.find(named, slot or (sat[0] if sat else "?"))

    def report(self, folder: PartyFolder, rows: Rows | None = None) -> RunReport:
        """Return the report of a party that is kept here, or was before it was forgotten.

        rows: the party's table, to draw its rows.
        """
        from coterie_pages.models import RunReport
        from party_sdk.reports.run_reports import run_report

        written = folder.load_report()
        if written is not None:
            if rows is not None:
                raise NotReady("Labels were forgotten: rows can no longer be drawn.")
            return RunReport.model_validate_json(written)
        with self.home.resume(folder.session, folder.slot, Policy()) as member:
            columns = folder.load_identity().columns
            data = None
            if rows is not None:
                rows = self.home.map_rows(folder, rows)
                data = rows.open(member.slot_fields, columns)
            return run_report(member, self.home.path, data=data)

    def manifest(self, folder: PartyFolder) -> dict[str, Any]:
        """Return the manifest of a session that is kept here, as JSON values.

        Raises NotReady once labels were forgotten.
        """
        from party_sdk.reports.run_reports import run_manifest

        with self.home.resume(folder.session, folder.slot, Policy()) as member:
            return run_manifest(member)

    def forget(self, session: str, slot: str, *, everything: bool = False) -> None:
        """Delete what is kept of a session; the log and a report stay by default.

        Raises NotReady if nothing is kept.
        """
        folder = self.home.folder(session, slot)
        if everything:
            self.find(session, slot)
            folder.forget(everything=True)
            return
        folder.load_identity()
        report = None
        with suppress(CoterieError):  # what cannot be read has to go all the same
            report = self.report(folder).model_dump_json().encode()
        folder.forget(report)

    def sign_log(self, folder: PartyFolder) -> SignedLog:
        """Return what left a party, signed by the institution that joined."""
        own = Meeting(self.home.path, self.home.entropy).institution
        member = folder.member
        if member is None or member.identity != own.key:
            raise NotReady("This party joined as another institution than this home's.")
        return sign_ledger(own, folder.session, folder.slot, folder.ledger.lines)

    def roster(self, session: str, slot: str) -> Roster | None:
        """Return who takes part, if that has been agreed upon."""
        agreement = self.find(session, slot).load_agreement()
        if agreement is None:
            return None
        return Roster.of(agreement, Acquaintances(self.home.path), slot)

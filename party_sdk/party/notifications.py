"""Being told: addresses that a coordinator or a party leaves at the analyst."""

from __future__ import annotations

from clustering_protocols.common.errors import NotFound, VersionMismatch
from clustering_protocols.wire.notices import ReceiverAdded, Receivers, Way
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.party.folder import PartyFolder


class OwnReceivers:
    """Whom the analyst tells about a session, of one caller.

    Every method raises :class:`VersionMismatch` where the analyst is of a release that
    tells nobody.
    """

    def __init__(self, analyst: Analyst, session: str) -> None:
        self._analyst = analyst
        self._session = session

    @classmethod
    def of_party(cls, folder: PartyFolder, analyst: Analyst) -> OwnReceivers:
        """Return those of a party that is kept on this disk.

        Raises NotReady if nothing is kept.
        """
        token = folder.load_identity().token
        return cls(analyst.as_party(token or ""), folder.session)

    def add(self, address: str) -> ReceiverAdded:
        """Let an address be told: https://… or one of mail.

        The secret of a webhook is returned here and nowhere else.

        Raises NotOffered if the administrator has not turned that way on.
        """
        way = Way.WEBHOOK if "://" in address else Way.MAIL
        try:
            return self._analyst.add_receiver(self._session, way, address)
        except NotFound:
            raise self._explain_missing() from None

    def list(self) -> Receivers:
        """Return who is told, and how that went."""
        try:
            return self._analyst.receivers(self._session)
        except NotFound:
            raise self._explain_missing() from None

    def remove(self, receiver_id: str) -> None:
        """Have an address told no more, and forgotten."""
        try:
            self._analyst.remove_receiver(self._session, receiver_id)
        except NotFound:
            raise self._explain_missing() from None

    def _explain_missing(self) -> NotFound | VersionMismatch:
        """Return why there is nothing: no session, or an older analyst."""
        try:
            self._analyst.session(self._session)
        except NotFound as error:
            return error
        return VersionMismatch(
            "The analyst is of an older release, which tells nobody. All else works: "
            "'coterie session watch' and 'coterie party run' wait here."
        )

"""Stage: establish secrets that row groups or column groups share.

The leader of each group draws 32 bytes and seals them in envelopes to the other
members. The secrets are independent: a member of one group learns nothing about the
secrets of other groups.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `share-secrets` → `secrets-shared` | `group-secret` from each group's leader |
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from pydantic import Field

from clustering_protocols.common.errors import EnvelopeRefused
from clustering_protocols.contract import (
    Exchange,
    Params,
    PartyContext,
    PartyRole,
    PeerMessage,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import KeyedStream, derive_key
from clustering_protocols.records.record import Record
from clustering_protocols.terms.terms import Layout, Slot

NAME = "secrets"
Scope = Literal["row", "column"]


class ShareSecrets(Record):
    """Task: draw and send the secrets of the groups that you lead."""

    kind = "share-secrets"


class SecretsShared(Record):
    """Contribution: confirms that the party has sent its secrets, if it leads a group."""

    kind = "secrets-shared"


class GroupSecret(Record):
    """Envelope: the secret (32 bytes, hex) of a group to which the receiver belongs."""

    kind = "group-secret"
    reach = "agreement"
    meaning = "Keys of your groups, for their parties."

    scope: Scope
    secret: str = Field(pattern=r"^[0-9a-f]{64}$")


class RowSecret(Record):
    """Memory: the secret of the party's row group (hex)."""

    kind = "row-secret"

    secret: str


class ColumnSecret(Record):
    """Memory: the secret of the party's column group (hex)."""

    kind = "column-secret"

    secret: str


_KINDS: Mapping[Scope, type[RowSecret | ColumnSecret]] = {
    "row": RowSecret,
    "column": ColumnSecret,
}


def group_of(layout: Layout, slot: Slot, scope: Scope) -> tuple[str, ...]:
    """Return the slots that share a secret with this slot; the first one leads."""
    if scope == "row":
        return layout.row_group(slot.row)
    return layout.column_group(slot.column)


def group_leaders(context: PartyContext, *scopes: Scope) -> tuple[str, ...]:
    """Return the distinct leaders of the party's groups, without the party itself."""
    groups = (group_of(context.session.layout, context.slot, s) for s in scopes)
    slots = dict.fromkeys(group[0] for group in groups)
    return tuple(slot for slot in slots if slot != context.slot.name)


def group_key(context: PartyContext, scope: Scope, purpose: str) -> bytes:
    """Derive the 32-byte key for a purpose from a group's secret, as all members do."""
    return key_for(context.session, context.recall(_KINDS[scope]).secret, purpose)


def key_for(session: SessionContext, secret: str, purpose: str) -> bytes:
    """Derive the key for a purpose from a secret (hex) and the session's agreement."""
    salt = bytes.fromhex(session.agreement_digest)
    return derive_key(bytes.fromhex(secret), "coterie/group/1", purpose, salt=salt)


def group_stream(context: PartyContext, scope: Scope, purpose: str) -> KeyedStream:
    """Return the random stream for a purpose, which is the same for all group members."""
    return KeyedStream(group_key(context, scope, purpose))


def group_mac(context: PartyContext, scope: Scope, purpose: str, content: bytes) -> str:
    """Return the HMAC-SHA256 (hex) of a value that members compare through the analyst.

    A plain digest of a few small numbers could be inverted by trying all numbers.
    """
    return hmac.new(group_key(context, scope, purpose), content, sha256).hexdigest()


@dataclass(frozen=True)
class SecretsParty(PartyRole[Params, ShareSecrets, GroupSecret]):
    """Draws secrets for the groups that it leads, and stores the secrets of others."""

    scopes: tuple[Scope, ...]

    def reply(
        self, context: PartyContext, task: ShareSecrets, data: DataSource
    ) -> Reply:
        """Draw a secret for each group that the party leads, and seal it to the members."""
        envelopes: list[PeerMessage] = []
        remember: list[Record] = []
        for scope in self.scopes:
            leader, *members = group_of(context.session.layout, context.slot, scope)
            if leader != context.slot.name:
                continue
            secret = context.stream(f"secret/{scope}").take(32).hex()
            remember.append(_KINDS[scope](secret=secret))
            content = GroupSecret(scope=scope, secret=secret)
            envelopes += [PeerMessage(peer=slot, content=content) for slot in members]
        return Reply(
            contribution=SecretsShared(),
            envelopes=envelopes,
            awaits=group_leaders(context, *self.scopes),
            remember=remember,
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[PeerMessage[GroupSecret]]
    ) -> Sequence[Record]:
        """Store the secrets that the leaders of the party's groups have sent.

        Raises EnvelopeRefused if the sender does not lead the group.
        """
        secrets: list[Record] = []
        for envelope in envelopes:
            content = envelope.content
            group = group_of(context.session.layout, context.slot, content.scope)
            if envelope.peer != group[0] or content.scope not in self.scopes:
                raise EnvelopeRefused("A secret came from a slot that leads no group.")
            secrets.append(_KINDS[content.scope](secret=content.secret))
        return secrets


def build_stage(*scopes: Scope) -> Stage:
    """Return the stage that establishes the secrets of these scopes."""
    return Stage.relaying(
        Exchange(ShareSecrets, SecretsShared),
        name=NAME,
        party=lambda: SecretsParty(scopes),
        envelopes=(GroupSecret,),
    )

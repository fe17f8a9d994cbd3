"""Who did what to this analyst: each act is one line of the log.

A line names people by the id and the label of their principal; no key, token, row or
payload is in it. Whoever collects the log stores it.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

LOGGER: Final = "coterie.administration"
log = logging.getLogger(LOGGER)
log.setLevel(logging.INFO)  # whatever --log-level says

Field = str | int | bool | None


class Act(StrEnum):
    """What is logged."""

    KEY_MADE = "key-made"
    KEY_ROTATED = "key-rotated"
    KEY_REVOKED = "key-revoked"
    TOKENS_REVOKED = "tokens-revoked"
    INVITATION_REFUSED = "invitation-refused"
    BACKUP_MADE = "backup-made"
    RESTORED = "restored"
    MIGRATED = "migrated"
    ADOPTED = "adopted"
    SESSION_DELETED = "session-deleted"


class Actor(NamedTuple):
    """Who did it: the id of a principal, or a name below; and a label for people."""

    id: str
    label: str = ""


COMMAND: Final = "command"
"""The id of anyone who runs commands on the analyst's machine; the label is their login."""

SERVICE: Final = Actor("service")
STRANGER: Final = Actor("stranger")


def log_act(act: Act, actor: Actor, **fields: Field) -> None:
    """Log what somebody did; fields that are None are left out."""
    who = {"actor": actor.id, "label": actor.label or None}
    present = {k: v for k, v in {**who, **fields}.items() if v is not None}
    log.info(act.value, extra={"fields": present})


def log_when_committed(
    transaction: Transaction, act: Act, actor: Actor, **fields: Field
) -> None:
    """Log what somebody did once its transaction is committed, and else nothing."""
    sa.event.listen(
        transaction,
        "after_commit",
        lambda _transaction: log_act(act, actor, **fields),
        once=True,
    )

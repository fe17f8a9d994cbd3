"""What both sides look up: the stages of an agreement, and the stage of a message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from clustering_protocols import registry
from clustering_protocols.contract import SessionContext, Stage
from clustering_protocols.engine.signatures import closing, opening
from clustering_protocols.errors import Malformed
from clustering_protocols.packets import Packet


@lru_cache(maxsize=64)
def load(agreement: bytes) -> tuple[SessionContext, tuple[Stage, ...]]:
    """Return context and stages of an agreement, given its exact bytes.

    The stages are the protocol's own between the opening and the closing.
    """
    session = registry.session_context(agreement)
    known = registry.protocol(session.terms.protocol.name)
    own = known.stages(session.params, session.layout)
    # where a quorum is enough, who is late has not signed
    least = int(quorum(session) == len(session.slots))
    return session, (opening(), *own, closing(own[-1], least=least))


def quorum(session: SessionContext) -> int:
    """Return how many parties a session needs until its end."""
    known = registry.protocol(session.terms.protocol.name)
    return known.quorum(session.params, session.layout)


def check_roster(session: SessionContext) -> None:
    """Let the protocol refuse rows and features that do not fit."""
    registry.protocol(session.terms.protocol.name).check_roster(session)


def stage_of(stages: Sequence[Stage], packet: Packet) -> Stage:
    """Return the stage that a message names; :class:`Malformed` if there is none."""
    for stage in stages:
        if stage.name == packet.address.stage:
            return stage
    raise Malformed("The message names a stage that this session does not have.")

"""What both sides look up: the stages of an agreement, and the stage of a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import Malformed, ProtocolFailed
from clustering_protocols.contract import Params, SessionContext, Stage
from clustering_protocols.engine.packets import Packet
from clustering_protocols.engine.signatures import (
    build_closing,
    build_opening,
    labelled_by,
)
from clustering_protocols.shared_stages import profiles as profiling
from clustering_protocols.terms.terms import Terms
from clustering_protocols.wire.answers import name_run_stage

_AT_ONCE: Final = 256  # sessions of an analyst that are under way


@lru_cache(maxsize=_AT_ONCE)
def load(agreement: bytes) -> tuple[SessionContext, tuple[Stage, ...]]:
    """Return context and stages of an agreement, given its exact bytes.

    The stages are the protocol's own between the opening and the closing.
    """
    session = session_terms.session_context(agreement)
    own = for_each_run(session, _own_stages(session.terms, session.params))
    # where a quorum is enough, who is late has not signed
    least = int(quorum(session) == len(session.slots))
    lasts = _lasts(own)
    return session, (
        build_opening(),
        *own,
        *profiles_stage(session.terms, lasts),
        build_closing(lasts, len(session.runs), least=least),
    )


def load_checked(agreement: bytes) -> tuple[SessionContext, tuple[Stage, ...]]:
    """Return the same of an agreement that can continue, whose roster is not refused."""
    _check_once(agreement)
    return load(agreement)


@lru_cache(maxsize=_AT_ONCE)
def _check_once(agreement: bytes) -> None:
    session, _ = load(agreement)
    session_terms.check_version(session.terms)
    check_roster(session)


def prepare_party(terms: Terms) -> None:
    """Import what a party's answers need, while it waits for others to join."""
    choice = terms.protocol
    for stage in _own_stages(terms, catalogue.parse_params(choice.name, choice.params)):
        stage.party()


def _own_stages(terms: Terms, params: Params) -> Sequence[Stage]:
    known = catalogue.protocol(terms.protocol.name)
    return with_filling(terms, known.stages(params, terms.layout))


def profiles_stage(terms: Terms, lasts: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the stage of profiles, where the terms release them."""
    if terms.release is None:
        return ()
    return (profiling.stage(terms.release, labelled_by(lasts), lasts[0].results_to),)


def last_stages(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the protocol's last stage of each run, of all stages of a session."""
    own = [each for each in stages[1:-1] if each.name != profiling.NAME]
    return _lasts(own)


def _lasts(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the last stage of each of several runs, else the last one."""
    last = {stage.run: stage for stage in stages}
    return tuple(last[run] for run in last if run is not None) or (stages[-1],)


def with_filling(terms: Terms, stages: Sequence[Stage]) -> Sequence[Stage]:
    """Return a protocol's stages with those that prepare rows, where the terms ask.

    They come once parties share secrets and hold the same rows: what is pooled are the
    rows that take part. Gaps are filled first, then site effects taken out.
    """
    fills = any(plan.fills for plan in terms.plans)
    harmonises = any(plan.harmonised.any() for plan in terms.plans)
    if not (fills or harmonises):
        return stages
    # not above: few sessions prepare rows so, and each process would read it
    from clustering_protocols.shared_stages import (
        imputation as filling,
        secrets,
        site_effects,
    )
    from clustering_protocols.shared_stages.alignment import (
        digests,
        intersection,
        linkage,
    )

    before = {secrets.NAME, digests.NAME, intersection.NAME, linkage.NAME}
    place = 1 + max(i for i, stage in enumerate(stages) if stage.name in before)
    added = [filling.stage()] * fills + [site_effects.stage()] * harmonises
    return (*stages[:place], *added, *stages[place:])


def for_each_run(session: SessionContext, stages: Sequence[Stage]) -> Sequence[Stage]:
    """Return the stages with those that belong to a run repeated, a run at a time."""
    if len(session.runs) == 1:
        return stages
    shared = [stage for stage in stages if not stage.each_run]
    repeated = [stage for stage in stages if stage.each_run]
    return (
        *shared,
        *(
            replace(stage, name=name_run_stage(stage.name, run), run=run)
            for run in range(len(session.runs))
            for stage in repeated
        ),
    )


def quorum(session: SessionContext) -> int:
    """Return how many parties a session needs until its end."""
    known = catalogue.protocol(session.terms.protocol.name)
    return known.quorum(session.params, session.layout)


def check_roster(session: SessionContext) -> None:
    """Refuse columns that the terms do not describe; let the protocol refuse the rest."""
    for slot in session.slots:
        _check_width(session, slot)
    catalogue.protocol(session.terms.protocol.name).check_roster(session)


def _check_width(session: SessionContext, slot: str) -> None:
    """Refuse another number of columns than the dictionary clusters."""
    schema = session.terms.dictionary_of(slot)
    if schema is None:
        return
    described = len(session.terms.columns(slot, schema.names))
    joined = session.member(slot).n_columns
    if described != joined:
        raise ProtocolFailed(
            f"{slot!r} joined with {joined} columns; the terms describe {described}."
        )


def shows_rows(stages: Sequence[Stage], task: Packet) -> bool:
    """Return whether who answers a task has shown rows to those outside by then."""
    asked = (task.address.stage, task.header.record.get("kind"))
    for stage in stages:
        for exchange in stage.exchanges:
            if exchange.shows:
                return True
            if (stage.name, exchange.task.kind) == asked:
                return False
    return False


def stage_of(stages: Sequence[Stage], packet: Packet) -> Stage:
    """Return the stage that a message names; :class:`Malformed` if there is none."""
    for stage in stages:
        if stage.name == packet.address.stage:
            return stage
    raise Malformed("The message names a stage that this session does not have.")

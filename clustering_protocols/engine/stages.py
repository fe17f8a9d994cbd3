"""The stages of a session, and the stage to which a message belongs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import Malformed, ProtocolFailed
from clustering_protocols.contract import Params, SessionContext, Stage
from clustering_protocols.engine.packets import Packet
from clustering_protocols.engine.signatures import (
    OPENING,
    build_closing,
    build_opening,
    build_outcome_reader,
)
from clustering_protocols.shared_stages import profiles as profiling
from clustering_protocols.terms.terms import SESSIONS_IN_MEMORY, Terms
from clustering_protocols.wire.answers import name_run_stage


@lru_cache(maxsize=SESSIONS_IN_MEMORY)
def load_session(agreement: bytes) -> tuple[SessionContext, tuple[Stage, ...]]:
    """Return the context and the stages of a session, given the agreement's bytes.

    The stages begin with the opening and end with the closing. Between them are the
    stages of the protocol, including those that prepare columns, and then the stage
    that computes profiles.
    """
    session = session_terms.build_session_context(agreement)
    own = repeat_per_run(session, _stages_of_one_run(session.terms, session.params))
    # If a quorum suffices, a late party need not sign.
    least = int(session_quorum(session) == len(session.slots))
    final_stages = _last_of_runs(own)
    return session, (
        build_opening(),
        *own,
        *profile_stages(session.terms, final_stages),
        build_closing(final_stages, least=least),
    )


def load_checked_session(agreement: bytes) -> tuple[SessionContext, tuple[Stage, ...]]:
    """Load an agreement after checking that this release accepts terms and roster."""
    _check_session_once(agreement)
    return load_session(agreement)


@lru_cache(maxsize=SESSIONS_IN_MEMORY)
def _check_session_once(agreement: bytes) -> None:
    session, _ = load_session(agreement)
    session_terms.check_version(session.terms)
    check_roster(session)


def import_party_roles(terms: Terms) -> None:
    """Import the modules of a party's roles while it waits for others to join."""
    choice = terms.protocol
    for stage in _stages_of_one_run(
        terms, catalogue.parse_params(choice.name, choice.params)
    ):
        stage.party()


def _stages_of_one_run(terms: Terms, params: Params) -> Sequence[Stage]:
    """Return the protocol's stages, and those that prepare columns for them."""
    protocol = catalogue.protocol(terms.protocol.name)
    return add_preparation_stages(terms, protocol.stages(params, terms.layout))


def profile_stages(terms: Terms, final_stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the stage that computes profiles, if the terms release them."""
    if terms.release is None:
        return ()
    audience = final_stages[0].results_to
    return (
        profiling.build_stage(
            terms.release, build_outcome_reader(final_stages), audience
        ),
    )


def last_stage_of_each_run(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the protocol's last stage of each run, given all stages of a session."""
    return _last_of_runs([s for s in stages[1:-1] if s.name != profiling.NAME])


def _last_of_runs(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    last = {stage.run: stage for stage in stages}
    return tuple(last[run] for run in last if run is not None) or (stages[-1],)


def add_preparation_stages(terms: Terms, stages: Sequence[Stage]) -> Sequence[Stage]:
    """Add the stages that fill gaps and remove site effects, if the terms require it.

    The added stages come after the secrets and the alignment of rows, because only
    participating rows are pooled. Gaps are filled before site effects are removed.
    """
    fills = any(plan.fills for plan in terms.plans)
    harmonises = any(plan.harmonised.any() for plan in terms.plans)
    if not (fills or harmonises):
        return stages
    # A late import: few sessions need these modules.
    from clustering_protocols.shared_stages import imputation as filling, site_effects

    index = 1 + max(i for i, stage in enumerate(stages) if not uses_values(stage.name))
    added = [filling.build_stage()] * fills + [site_effects.build_stage()] * harmonises
    return (*stages[:index], *added, *stages[index:])


def uses_values(stage: str) -> bool:
    """Return whether answers in a stage may depend on more than the ids of rows.

    Only the opening, the exchange of secrets and the alignment of rows use no values.
    """
    # A late import: a process that only reads messages needs no alignment.
    from clustering_protocols.shared_stages import secrets
    from clustering_protocols.shared_stages.alignment import digests, linkage

    return stage not in {OPENING, secrets.NAME, digests.NAME, linkage.NAME}


def repeat_per_run(session: SessionContext, stages: Sequence[Stage]) -> Sequence[Stage]:
    """Return the stages, repeating for every run each stage that belongs to one run."""
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


def session_quorum(session: SessionContext) -> int:
    """Return the number of parties that a session needs until its end."""
    protocol = catalogue.protocol(session.terms.protocol.name)
    return protocol.quorum(session.params, session.layout)


def check_roster(session: SessionContext) -> None:
    """Raise :class:`ProtocolFailed` if numbers of columns or rows are not allowed."""
    for slot in session.slots:
        schema = session.terms.dictionary_of(slot)
        if schema is None:
            continue
        n_described = len(session.terms.columns(slot, schema.names))
        n_columns = session.member(slot).n_columns
        if n_described != n_columns:
            raise ProtocolFailed(
                f"{slot!r} joined with {n_columns} columns; the terms describe "
                f"{n_described}."
            )
    catalogue.protocol(session.terms.protocol.name).check_roster(session)


def find_stage(stages: Sequence[Stage], packet: Packet) -> Stage:
    """Return the stage that a message names; raise :class:`Malformed` if unknown."""
    for stage in stages:
        if stage.name == packet.address.stage:
            return stage
    raise Malformed("The message names a stage that this session does not have.")

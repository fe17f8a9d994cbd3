"""The analyst's side of a session, which opens rounds and checks contributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from typing_extensions import Buffer

from clustering_protocols.common.errors import (
    AgreementMismatch,
    Malformed,
    ProtocolFailed,
    RoundClosed,
)
from clustering_protocols.contract import Ask, Finish, Reopen, Stage
from clustering_protocols.contract.analyst import NoState
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.engine.cluster_numbers import renumber_run
from clustering_protocols.engine.packets import UNSIGNED, Packet
from clustering_protocols.engine.session_state import (
    Choosing,
    Closed,
    Move,
    OngoingSession,
    Opened,
)
from clustering_protocols.engine.stages import (
    check_roster,
    find_stage,
    load_session,
    session_quorum,
)
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.records import hash_chain
from clustering_protocols.records.record import Record
from clustering_protocols.records.rounds import RoundRef
from clustering_protocols.shared_stages import profiles as profiling
from clustering_protocols.shared_stages.profiles.messages import TakeLabels

MAX_ATTEMPTS = 5


def begin_session(agreement: bytes) -> Move:
    """Return the first round of a session that all parties have joined."""
    session, stages = load_session(agreement)
    check_roster(session)
    return _start_stage(OngoingSession.begin(session, stages))


def advance_session(
    agreement: bytes,
    state: Buffer,
    tasks: Mapping[str, Buffer],
    contributions: Mapping[str, Buffer],
    runs_on: Engine = ONE_THREAD,
) -> Move:
    """Return the next move after a round is complete.

    Equal input bytes give equal output bytes, on any machine and for any order in which
    the contributions arrived.

    state: buffer; ``Opened.state`` of this round.
    tasks, contributions: mapping of slot to buffer; the tasks as they were sent, and at
        least as many contributions as the quorum.
    runs_on: the engine that runs kernels over blocks of rows; every engine gives the
        same bytes.

    Raises CoterieError if the session cannot continue; the error's problem says why the
        session ends.
    """
    session, stages = load_session(agreement)
    ongoing = OngoingSession.decode(replace(session, engine=runs_on), stages, state)
    answers = {
        s: packets.parse(contributions[s]) for s in session.slots if s in contributions
    }
    records = {
        slot: check_answer(packets.parse(tasks[slot]), packet, ongoing.stage)
        for slot, packet in answers.items()
    }
    ongoing = ongoing.record_answers(records).collect_signatures(records)
    role = ongoing.stage.analyst()
    stage_state = role.state.decode(ongoing.stage_state)
    move = role.step(ongoing.run_session, stage_state, records)
    if isinstance(move, Reopen):
        return _reopen_round(ongoing, tasks, move)
    mail = [envelope for packet in answers.values() for envelope in packet.to_mail()]
    return _apply_move(ongoing.with_mail(mail), move)


def choose_run(agreement: bytes, state: Buffer, run: int | None) -> Opened:
    """Return the last round of a session after its coordinator has chosen a run.

    state: buffer; ``Choosing.state``.
    run: the number of the run, or None if the deadline has passed.

    Raises ProtocolFailed if there is no such run, or none that could be chosen.
    """
    session, stages = load_session(agreement)
    ongoing = OngoingSession.decode(session, stages, state)
    evaluation = session.terms.evaluation
    if run is None and evaluation is not None:
        run = evaluation.best_run(ongoing.results.figures)
    if run is None or not 0 <= run < len(session.runs):
        raise ProtocolFailed("The session has no such run.")
    return _select_run(ongoing, run)


def import_analyst_roles(agreement: bytes) -> None:
    """Import the modules that a session needs, so that no round waits for an import."""
    _, stages = load_session(agreement)
    for stage in stages:
        stage.analyst()


def read_result(agreement: bytes, result: Buffer) -> Record:
    """Return the record in a result or a summary of the last stage."""
    _, stages = load_session(agreement)
    return packets.parse(result).read(stages[-1].results)


def _start_stage(ongoing: OngoingSession) -> Move:
    return _apply_move(ongoing, ongoing.stage.analyst().start(ongoing.run_session))


def _apply_move(ongoing: OngoingSession, move: Ask | Finish) -> Move:
    """Open the next round of this stage, start the next stage, or close the session."""
    if isinstance(move, Ask):
        return _open_round(ongoing, move)
    if move.n_rows:
        session = ongoing.session.with_rows(move.n_rows)
        check_roster(session)
        ongoing = replace(ongoing, session=session)
    if ongoing.is_last_stage:
        return _close_session(ongoing)
    runs = [renumber_run(ongoing.session, run) for run in move.runs]
    results = ongoing.results.add_runs(runs)
    ongoing = replace(ongoing, results=results, index=ongoing.index + 1)
    if not (ongoing.is_last_stage or ongoing.stage.name == profiling.NAME):
        return _start_stage(ongoing)
    if results.chosen_run is not None:
        return _open_closing(ongoing)
    evaluation = ongoing.session.terms.evaluation
    if evaluation is None:
        return _select_run(ongoing, 0)
    if evaluation.choose == "later":
        state = ongoing.encode(NoState(), 0, ())
        return Choosing(state=state, conclusion=results.conclusion)
    return _select_run(ongoing, evaluation.best_run(results.figures))


def _select_run(ongoing: OngoingSession, run: int) -> Opened:
    ongoing = replace(ongoing, results=ongoing.results.choose_run(run))
    return _open_closing(ongoing) if ongoing.is_last_stage else _open_labels(ongoing)


def _open_labels(ongoing: OngoingSession) -> Opened:
    results, figures = ongoing.results.results_by_slot, ongoing.results.compared_figures
    chosen = ongoing.results.chosen_run or 0
    tasks = packets.map_distinct(
        lambda result: TakeLabels(figures=figures, chosen=chosen, result=result),
        {slot: results[slot] for slot in ongoing.session.slots},
    )
    state = ongoing.stage.analyst().state()
    opened = _open_round(ongoing, Ask(tasks=tasks, state=state))
    return replace(opened, conclusion=ongoing.results.conclusion)


def _open_closing(ongoing: OngoingSession) -> Opened:
    """Open the last round for all slots or, if a quorum suffices, for those present."""
    session, results = ongoing.session, ongoing.results
    minimum = session_quorum(session)
    slots = session.slots if minimum == len(session.slots) else ongoing.present_slots
    task = signatures.Conclude(
        figures=results.compared_figures, chosen=results.chosen_run or 0
    )
    opened = _open_round(ongoing, Ask(tasks=dict.fromkeys(slots, task), quorum=minimum))
    return replace(opened, conclusion=results.conclusion)


def _open_round(ongoing: OngoingSession, ask: Ask) -> Opened:
    return _open_attempt(replace(ongoing, round=ongoing.round + 1, attempt=1), ask)


def _reopen_round(
    ongoing: OngoingSession, tasks: Mapping[str, Buffer], move: Reopen
) -> Opened:
    if ongoing.attempt == MAX_ATTEMPTS:
        raise ProtocolFailed(
            f"Round {ongoing.round} was void {MAX_ATTEMPTS} times: {move.reason}"
        )
    mail = [
        (slot, envelope)
        for slot, task in tasks.items()
        for envelope in packets.parse(task).envelopes
    ]
    ongoing = replace(ongoing, attempt=ongoing.attempt + 1)
    return _open_attempt(ongoing.with_mail(mail), move.ask)


def _open_attempt(ongoing: OngoingSession, ask: Ask) -> Opened:
    stage, layout = ongoing.stage, ongoing.session.layout
    exchange = stage.exchange_of(next(iter(ask.tasks.values())).kind)
    task_digests = packets.map_distinct(
        lambda task: packets.digest_content(task.header(), task.arrays, exchange.own),
        ask.tasks,
    )
    digests = transcript.group_digests(layout, exchange.audience, task_digests)
    if ongoing.is_last_stage and (result_digests := ongoing.results.digests):
        digests += transcript.group_digests(layout, stage.results_to, result_digests)
    lines = transcript.append_attempt(
        ongoing.lines,
        RoundRef(stage=stage.name, round=ongoing.round, attempt=ongoing.attempt),
        asks=exchange.task.kind,
        left_out=[slot for slot in ongoing.session.slots if slot not in ask.tasks],
        told=digests,
    )
    ongoing = replace(ongoing, lines=lines)
    tasks = {
        slot: packets.write_packet(
            ongoing.address(slot),
            task,
            own=exchange.own,
            expects=packets.Expectation(
                kind=exchange.answer.kind, dims=dict(ask.dims.get(slot, {}))
            ),
            envelopes=[e for to, e in ongoing.mail if to == slot],
            history=ongoing.list_unanswered_lines(slot),
            signatures=ongoing.list_unseen_signatures(slot),
        )
        for slot, task in ask.tasks.items()
    }
    quorum = ask.quorum or len(tasks)
    profiles = [profile.model_dump(mode="json") for profile in ask.profiles]
    return Opened(
        round=ongoing.round,
        attempt=ongoing.attempt,
        stage=stage.name,
        stage_index=ongoing.index,
        n_stages=len(ongoing.stages),
        quorum=quorum,
        state=ongoing.encode(ask.state, quorum, tasks),
        tasks=tasks,
        progress=ask.progress or None,
        profiles=profiles or None,
    )


def _close_session(ongoing: OngoingSession) -> Closed:
    results = {
        slot: packets.write_encoded_packet(
            ongoing.address(slot),
            result,
            history=ongoing.list_unanswered_lines(slot) if slot else (),
            signatures=ongoing.signatures if slot else UNSIGNED,
        )
        for slot, result in ongoing.results.results_by_slot.items()
    }
    return Closed(summary=results.pop("", None), results=results)


def check_contribution(agreement: bytes, task: Buffer, contribution: Buffer) -> None:
    """Raise unless the bytes answer a task; see :func:`check_answer`.

    Raises SignatureRefused if a signature does not cover the transcript of the task.
    """
    session, stages = load_session(agreement)
    question, answer = packets.parse(task), packets.parse(contribution)
    record = check_answer(question, answer, find_stage(stages, question))
    address = answer.address
    if question.history:
        digest = hash_chain.digest(question.history[-1])
        signatures.check_uploaded_signature(
            session, address.stage, digest, address.slot, record
        )
    peers = set(session.slots) - {address.slot}
    for envelope in answer.envelopes:
        if envelope.label.when != address.when or envelope.label.peer not in peers:
            raise Malformed(
                "An envelope's label must name this round and another party's slot."
            )


def check_answer(task: Packet, contribution: Packet, stage: Stage) -> Record:
    """Return the contribution's record if it answers the task.

    The party calls this before it sends a contribution, and the analyst when it
    arrives.

    Raises RoundClosed, AgreementMismatch, Malformed, InvalidArray if the record belongs
        to another round or session, or has a wrong kind or size.
    """
    opened, address = task.address, contribution.address
    if (address.round, address.attempt) != (opened.round, opened.attempt):
        raise RoundClosed(
            f"The open round is {opened.round}, attempt {opened.attempt}; the message is "
            f"for round {address.round}, attempt {address.attempt}."
        )
    if contribution.history or len(contribution.signatures):
        raise Malformed("Only the analyst sends a transcript.")
    if contribution.own:
        raise Malformed("A contribution has no fields of its own.")
    if address != opened:
        wrong = [
            name
            for name in type(address).model_fields
            if getattr(address, name) != getattr(opened, name)
        ]
        raise AgreementMismatch(
            f"The message's address has the wrong {', '.join(wrong)}."
        )
    answer = stage.exchange_of(task.read(stage.tasks).kind).answer
    expected = task.header.expects
    if expected is None or expected.kind != answer.kind:
        raise Malformed(f"The task does not ask for a {answer.kind!r}.")
    record = contribution.read([answer])
    record.require(expected.dims)
    return record

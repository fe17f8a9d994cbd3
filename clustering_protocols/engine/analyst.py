"""The analyst's side of a session: rounds opened, contributions checked, closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from typing_extensions import Buffer

from clustering_protocols import codec, packets
from clustering_protocols.arrays import ByteArray
from clustering_protocols.blocks import ONE_THREAD, Engine
from clustering_protocols.contract import Ask, Finish, Reopen
from clustering_protocols.engine import held, mail, signatures, transcript
from clustering_protocols.engine.course import AnalystState, Course
from clustering_protocols.engine.moves import Choosing, Closed, Conclusion, Move, Opened
from clustering_protocols.engine.stages import check_roster, load, quorum, stage_of
from clustering_protocols.errors import Malformed, ProtocolFailed
from clustering_protocols.packets import UNSIGNED, Expectation, Header, Packet
from clustering_protocols.profiling.messages import TakeLabels
from clustering_protocols.records import Record

MAX_ATTEMPTS = 5


def begin(agreement: bytes) -> Move:
    """Return the first round of a session whose parties have all joined."""
    session, stages = load(agreement)
    check_roster(session)
    return _enter(Course.beginning(session, stages))


def advance(
    agreement: bytes,
    state: Buffer,
    tasks: Mapping[str, Buffer],
    contributions: Mapping[str, Buffer],
    runs_on: Engine = ONE_THREAD,
) -> Move:
    """Return what follows from a complete round.

    Deterministic: equal bytes in, equal bytes out, whichever machine runs it and in
    whichever order the contributions came.

    Parameters
    ----------
    agreement : bytes
    state : buffer
        ``Opened.state`` of this round.
    tasks, contributions : mapping of slot to buffer
        Tasks as handed out; contributions of at least the quorum.
    runs_on : Engine, optional
        Runs kernels over blocks of rows; whichever it is, the bytes are the same.

    Raises
    ------
    CoterieError
        If the session cannot go on; its problem is the reason of the end.
    """
    session, stages = load(agreement)
    current = AnalystState.decode(state)
    course = Course.resumed(session.on(runs_on), stages, current)
    given = {
        s: packets.read(contributions[s]) for s in session.slots if s in contributions
    }
    records = {
        slot: packets.check_answers(packets.read(tasks[slot]), packet, course.stage)
        for slot, packet in given.items()
    }
    course = _signed(course.answered(list(given)), records, current.quorum)
    role = course.stage.analyst()
    stage_state = role.state.decode(current.stage_state.data)
    move = role.step(course.here, stage_state, records)
    if isinstance(move, Reopen):
        return _open_again(course, tasks, move, current.quorum)
    sent = [
        mail.posted(slot, envelope)
        for slot, packet in given.items()
        for envelope in packet.envelopes
    ]
    return _follow(replace(course, relay=[*course.relay, *sent]), move)


def choose(agreement: bytes, state: Buffer, run: int | None) -> Opened:
    """Return the last round of a session whose coordinator has chosen a run.

    Parameters
    ----------
    state : buffer
        ``Choosing.state``.
    run : int, optional
        Its number; None where nobody said anything in time.

    Raises
    ------
    ProtocolFailed
        If there is no such run, or none that could be chosen.
    """
    session, stages = load(agreement)
    course = Course.resumed(session, stages, AnalystState.decode(state))
    evaluation, figures = session.terms.evaluation, held.figures(course.held)
    if run is None and evaluation is not None:
        run = evaluation.best(figures)
    if run is None or not 0 <= run < len(session.runs):
        raise ProtocolFailed("The session has no such run.")
    return _decided(course, run)


def prepare(agreement: bytes) -> None:
    """Import what the steps of a session need, so that none of them waits for it."""
    _, stages = load(agreement)
    for stage in stages:
        stage.analyst()


def check_contribution(agreement: bytes, task: Buffer, contribution: Buffer) -> None:
    """Refuse bytes that do not answer a task; see :func:`packets.check_answers`."""
    session, stages = load(agreement)
    asked, given = packets.read(task), packets.read(contribution)
    stage = stage_of(stages, asked)
    packets.check_answers(asked, given, stage)
    here = given.address
    for label in (envelope.label for envelope in given.envelopes):
        others = set(session.slots) - {here.slot}
        if label.when != here.when or label.peer not in others:
            raise Malformed("An envelope's label names another round or no other slot.")


def read_result(agreement: bytes, result: Buffer) -> Record:
    """Return the record in a result or summary of the last stage."""
    _, stages = load(agreement)
    return packets.read(result).read(stages[-1].results)


def _signed(course: Course, records: Mapping[str, Record], needed: int) -> Course:
    """Return the course with the signatures of the opening, or of the closing."""
    if not (course.is_first_stage or course.is_last_stage):
        return course
    found = signatures.collect(course.session, records)
    name, told = course.stage.name, course.transcript
    signatures.check(course.session, name, told, found, needed)
    return replace(course, signatures=found)


def _enter(course: Course) -> Move:
    return _follow(course, course.stage.analyst().start(course.here))


def _follow(course: Course, move: Ask | Finish) -> Move:
    """Go on in this stage, in the next one, or close."""
    if isinstance(move, Ask):
        return _open(replace(course, round=course.round + 1, attempt=1), move)
    if move.n_rows:
        session = course.session.with_rows(move.n_rows)
        check_roster(session)
        course = replace(course, session=session)
    if course.is_last_stage:
        return _close(course)
    if move.runs:
        course = replace(course, held=held.keep(course.held, move.runs))
    course = replace(course, index=course.index + 1)
    if not course.is_after_runs:
        return _enter(course)
    if held.chosen(course.held) is None:
        return _choose(course)
    return _conclude(course)


def _choose(course: Course) -> Opened | Choosing:
    """Go on with the run that the terms say, or wait for the coordinator's word."""
    evaluation = course.session.terms.evaluation
    if evaluation is None:
        return _decided(course, 0)
    figures = held.figures(course.held)
    if evaluation.choose == "later":
        return course.waiting(figures)
    return _decided(course, evaluation.best(figures))


def _decided(course: Course, run: int) -> Opened:
    course = replace(course, held=held.decide(course.held, run))
    return _conclude(course) if course.is_last_stage else _hand_out(course)


def _hand_out(course: Course) -> Opened:
    """Open the round in which every party takes the labels of the chosen run."""
    results = held.results(course.held)
    several = len(course.session.runs) > 1
    figures = held.figures(course.held) if several else []
    chosen = held.chosen(course.held) or 0
    once = {id(result): result for result in results.values()}
    made = {
        key: TakeLabels(figures=figures, chosen=chosen, result=result)
        for key, result in once.items()
    }
    tasks = {slot: made[id(results[slot])] for slot in course.session.slots}
    state = course.stage.analyst().state()
    course = replace(course, round=course.round + 1, attempt=1)
    return _with_conclusion(course, _open(course, Ask(tasks=tasks, state=state)))


def _conclude(course: Course) -> Opened:
    """Open the last round: for all or, where a quorum is enough, for those at hand."""
    session = course.session
    needed = quorum(session)
    slots = session.slots if needed == len(session.slots) else course.present
    task = signatures.last_task(
        course.stage, held.figures(course.held), held.chosen(course.held) or 0
    )
    tasks = dict.fromkeys(slots, task)
    course = replace(course, round=course.round + 1, attempt=1)
    return _with_conclusion(course, _open(course, Ask(tasks=tasks, quorum=needed)))


def _with_conclusion(course: Course, opened: Opened) -> Opened:
    told = [each.values for each in held.figures(course.held)]
    chosen = held.chosen(course.held) or 0
    return replace(opened, conclusion=Conclusion(figures=told, chosen=chosen))


def _open(course: Course, ask: Ask) -> Opened:
    """Open a round, or open it again with other tasks."""
    asks = next(iter(ask.tasks.values())).kind
    course = course.noted(asks, list(ask.tasks), _told(course, asks, ask))
    tasks = {slot: _task(course, slot, task, ask) for slot, task in ask.tasks.items()}
    opened = course.opened(
        ask.state, ask.quorum or len(tasks), tasks, ask.progress or None
    )
    profiles = [each.model_dump(mode="json") for each in ask.profiles]
    return replace(opened, profiles=profiles or None)


def _told(course: Course, asks: str, ask: Ask) -> Sequence[str]:
    """Return the digests of what is told: the tasks, at the end the results as well."""
    layout, to = course.session.layout, course.stage.results_to
    exchange = course.stage.exchange_of(asks)
    results = held.digests(course.held) if course.is_last_stage else {}
    of_results = transcript.told(layout, to, results) if results else []
    if course.is_last_stage and not signatures.tells_runs(course.stage):
        return of_results
    distinct = {id(task): task for task in ask.tasks.values()}
    found = {
        key: packets.digest_of(task.header(), task.arrays, exchange.own)
        for key, task in distinct.items()
    }
    digests = {slot: found[id(task)] for slot, task in ask.tasks.items()}
    return [*transcript.told(layout, exchange.audience, digests), *of_results]


def _task(course: Course, slot: str, task: Record, ask: Ask) -> bytes:
    """Return a slot's task as bytes, with its envelopes and what it has not been told."""
    answer = course.stage.exchange_of(task.kind).answer
    return packets.write(
        course.address(slot),
        task,
        expects=Expectation(kind=answer.kind, dims=dict(ask.dims.get(slot, {}))),
        envelopes=[envelope for to, envelope in course.relay if to == slot],
        history=course.lacking(slot),
        signatures=course.to_show(slot),
    )


def _open_again(
    course: Course, tasks: Mapping[str, Buffer], move: Reopen, needed: int
) -> Opened:
    attempt = course.attempt + 1
    if attempt > MAX_ATTEMPTS:
        raise ProtocolFailed(
            f"Round {course.round} was void {MAX_ATTEMPTS} times: {move.reason}"
        )
    course = replace(course, attempt=attempt)
    before = {slot: packets.read(task) for slot, task in tasks.items()}
    if move.ask is not None:
        sent = [(to, each) for to, task in before.items() for each in task.envelopes]
        return _open(replace(course, relay=[*course.relay, *sent]), move.ask)
    asks = next(iter(before.values())).header.record["kind"]
    course = course.noted(asks, list(tasks), transcript.last(course.lines).told)
    again = {
        slot: packets.encode(
            replace(
                task.restamped(attempt),
                history=course.lacking(slot),
                signatures=course.to_show(slot),
            )
        )
        for slot, task in before.items()
    }
    return course.opened(move.state, needed, again, None)


def _close(course: Course) -> Closed:
    def packet(slot: str, record: ByteArray) -> bytes:
        header, arrays = codec.decode(record.data)
        return packets.encode(
            Packet(
                header=Header(address=course.address(slot), record=header),
                arrays=arrays,
                history=course.lacking(slot) if slot else (),
                signatures=course.signatures if slot else UNSIGNED,
            )
        )

    summary = held.summary(course.held)
    return Closed(
        results={
            slot: packet(slot, r) for slot, r in held.results(course.held).items()
        },
        summary=None if summary is None else packet("", summary),
    )

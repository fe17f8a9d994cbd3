"""A party that looks after itself: its policy, and an analyst that is not honest."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from support import raw_packets
from support.drawn_terms import drawn
from support.in_process import ACCEPTING, Api, ByHand, StartApi

from analyst_service import contribution_endpoints as tasks
from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    AgreementMismatch,
    CoterieError,
    Equivocation,
    GuardRefused,
    InvalidArray,
    InvalidParameters,
    KeyNotAuthentic,
    Malformed,
    NotReady,
    RiskNotAccepted,
    TaskRefused,
    Unavailable,
)
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.protocols.cohort import CohortSize
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import codec
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys, compute_mark, safety_number
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import Guards, Layout, Terms, read_terms
from clustering_protocols.wire.answers import SessionStatus
from coterie import Party, Policy, Result
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.application.home import Home
from party_sdk.disclosures.uses import Use
from party_sdk.party.participant import Offer, describe_choices, merge_choices
from party_sdk.party.party_session import PartySession
from party_sdk.party.rounds import Responder
from party_sdk.supervisor.order_runner import DecisionPending

Tamper = Callable[[httpx.Request, httpx.Response], httpx.Response]

X = np.random.default_rng(0).normal(size=(40, 3))
ALONE = simulation.split(X, Layout.lattice(1), seed=1)
PAIR = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PAIR.layout.names
RISKS = ("dummy.by-design", "house.open-slot")


def terms(
    params: Dummy | DataCollaboration, layout: Layout = PAIR.layout, minimum: int = 1
) -> Terms:
    return drawn(params, layout, guards=Guards(minimum_rows=minimum))


def test_each_risk_has_to_be_accepted() -> None:
    agreed = terms(DataCollaboration(n_clusters=2, dimensions="all_but_one"))
    assert len(agreed.risks) >= 2
    for left_out in agreed.risks:
        others = frozenset(agreed.risks) - {left_out}
        with pytest.raises(RiskNotAccepted, match=left_out):
            Policy(accepted_risks=others).check_terms(agreed)
    Policy(accepted_risks=frozenset(agreed.risks)).check_terms(agreed)


def test_only_the_protocols_of_the_list_are_taken_part_in() -> None:
    for allowed in (None, frozenset({"dummy"})):
        replace(ACCEPTING, protocols=allowed).check_terms(terms(Dummy()))
    for others in (frozenset({"dc"}), frozenset[str]()):
        with pytest.raises(GuardRefused, match="'dummy' is not on the list 'protoc"):
            replace(ACCEPTING, protocols=others).check_terms(terms(Dummy()))


@pytest.mark.parametrize(("own", "agreed", "needed"), [(10, 1, 10), (1, 12, 12)])
def test_the_stricter_of_both_minima_of_rows_counts(
    own: int, agreed: int, needed: int
) -> None:
    policy, asked = Policy(minimum_rows=own), terms(Dummy(), minimum=agreed)
    policy.check_min_rows(asked, needed)
    fewer = needed - 1
    with pytest.raises(GuardRefused, match=f"'minimum_rows' is {needed}.* {fewer} r"):
        policy.check_min_rows(asked, fewer)


def test_terms_that_this_release_would_not_draw_up_are_refused() -> None:
    agreed = terms(Dummy()).model_dump()
    with pytest.raises(InvalidParameters):
        ACCEPTING.check_terms(Terms.model_validate({**agreed, "risks": RISKS[:1]}))


class Table:
    """A party in the SDK, its session at a running analyst, and who stands between.

    ``old``: the analyst knows no waiting uploads, so that tasks come by GET alone.
    """

    def __init__(
        self,
        api: Api,
        home: Path,
        parts: simulation.Split,
        params: Params,
        **more: Any,
    ) -> None:
        self.api = api
        self.home = home
        self.parts = parts
        self.session: ByHand = api.open(params, parts, **more)
        self.old, self.undelivered = True, ""
        self.between = api.wire()
        self.between.before = self._pass_on
        others = parts.layout.names[1:]
        if others:
            self.session.join(*others, turn=False)

    def _pass_on(self, request: httpx.Request) -> None:
        if self.undelivered and request.url.path.endswith(self.undelivered):
            raise httpx.ConnectError("not delivered", request=request)
        if self.old:
            request.headers.pop("prefer", None)

    def party(self, tamper: Tamper | None = None, **more: Any) -> Party:
        self.between.after = tamper or (lambda _, response: response)
        entropy = self.session.keys[A]
        return self.session.accept(
            A, self.home, self.between, patience=0, entropy=entropy, **more
        )

    def run(
        self, tamper: Tamper | None = None, data: Any = None, **more: Any
    ) -> Result:
        with self.party(tamper, **more) as party:
            rows = self.parts.data[A] if data is None else data
            return party.run(rows, on_progress=self.others_answer)

    def others_answer(self, status: SessionStatus | None = None) -> None:
        """Let the other parties answer if they are awaited now."""
        del status
        now = SessionStatus.model_validate(self.session.status)
        for slot in now.awaited_slots:
            if now.state == "collecting" and slot != A:
                self.session.answer(slot, turn=False)


@pytest.fixture
def running(start_api: StartApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr(tasks, "MAX_WAIT_SECONDS", 0.05)  # others answer between
    with start_api(driven=True) as api:
        yield api


@pytest.fixture
def alone(running: Api, home: Path) -> Table:
    return Table(running, home, ALONE, Dummy(n_clusters=3))


@pytest.fixture
def waiting(start_api: StartApi, home: Path) -> Iterator[Table]:
    """The same, at an analyst that holds uploads until the next task is there."""
    with start_api(driven=True) as api:
        table = Table(api, home, ALONE, Dummy(n_clusters=3))
        table.old = False
        yield table


@pytest.fixture
def pair(running: Api, home: Path) -> Table:
    return Table(running, home, PAIR, Dummy(n_clusters=3))


def on(method: str, ending: str, change: Callable[[bytes], bytes]) -> Tamper:
    """Change the bodies of successful answers to one kind of request."""

    def tamper(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        asked = request.method == method and request.url.path.endswith(ending)
        if not (asked and response.status_code == 200):
            return response
        return replaced(response, change(response.content))

    return tamper


def replaced(response: httpx.Response, content: bytes) -> httpx.Response:
    media_type = response.headers.get("content-type", codec.MEDIA_TYPE)
    return httpx.Response(200, content=content, headers={"Content-Type": media_type})


def in_json(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        document = json.loads(content)
        change(document)
        return json.dumps(document).encode()

    return changed


def in_terms(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """Change the terms, a text of JSON within a document."""

    def change(document: dict[str, Any]) -> None:
        agreed = json.loads(document["terms"])
        document["terms"] = json.dumps({**agreed, **changes})

    return change


def in_header(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        header, arrays = raw_packets.decode(content)
        change(header)
        return raw_packets.encode(header, arrays)

    return changed


# Before joining: nothing but the code is sent


@pytest.mark.threat(82)
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (in_terms(risks=[]), "differ from those that the coordinator"),
        (lambda d: d.update(terms="{}"), "differ from those that the coordinator"),
        (lambda d: d.update(slot="another"), "previews a different session or slot"),
    ],
    ids=["risks that were left out", "no terms", "another slot"],
)
def test_terms_that_the_coordinator_did_not_sign_are_refused(
    alone: Table, change: Callable[[dict[str, Any]], object], why: str
) -> None:
    with pytest.raises(AgreementMismatch, match=why):
        alone.party(on("POST", "/preview", in_json(change)))
    assert_only_previewed(alone)


def test_too_few_rows_stop_before_anything_is_sent(alone: Table) -> None:
    with pytest.raises(GuardRefused, match="minimum_rows"):
        alone.run(data=np.ones((9, 3)))
    _, told = alone.between.requests
    assert told.url.path == "/v1/join/decline"
    said = json.loads(told.content)
    assert {name: said[name] for name in ("state", "reason")} == {
        "state": "refused",
        "reason": "guard-refused",
    }, "which check it was, and no number"


def test_rows_that_were_counted_before_do_not_take_a_slot(
    running: Api, home: Path
) -> None:
    columns = simulation.split(X, Layout.lattice(1, 2), seed=1)
    table = Table(running, home, columns, CohortSize())
    agreed = read_terms(table.session.drawn)
    policy = ACCEPTING.accept_risks(agreed.risks)
    data, stored = columns.data[A], table.party(policy=policy).stored
    use = Use.intersection(agreed, "earlier", A)
    assert use is not None
    stored.history.record(use, stored.history.rows_of(data), policy)
    with pytest.raises(GuardRefused, match="counted with other parties'"):
        table.run(policy=policy)
    assert not stored.has_joined
    assert not table.between.sent("/join")


def test_an_invitation_of_an_unlisted_coordinator_asks_the_analyst_nothing(
    alone: Table,
) -> None:
    with pytest.raises(GuardRefused, match="'coordinators'"):
        alone.party(policy=replace(ACCEPTING, coordinators=frozenset()))
    assert alone.between.requests == []


def test_stored_terms_and_a_refusal_of_the_inviter_need_no_connection(
    alone: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Home, "connect", Mock(side_effect=Unavailable("No network.")))
    own_home, invitation = Home(path=alone.home), alone.session.invitation(A)
    with pytest.raises(GuardRefused, match="'analysts'"):
        own_home.fetch_offer(invitation, replace(ACCEPTING, analysts=frozenset()))
    with pytest.raises(Unavailable):
        own_home.fetch_offer(invitation, ACCEPTING)
    stored = alone.party().stored
    offer = own_home.fetch_offer(invitation, ACCEPTING)
    assert offer.text.decode() == stored.load_identity().terms


@pytest.mark.threat(82)
def test_an_offer_that_the_caller_fetched_is_checked_again(alone: Table) -> None:
    text = alone.session.drawn
    offer = Offer(Invitation.parse(alone.session.invitation(A)), text, read_terms(text))
    with pytest.raises(GuardRefused, match="'analysts'"):
        alone.party(policy=replace(ACCEPTING, analysts=frozenset()), offer=offer)
    with pytest.raises(AgreementMismatch, match="those that the coordinator signed"):
        alone.party(offer=offer._replace(text=text + b" "))
    assert not alone.home.exists()
    assert alone.party(offer=offer).stored.exists
    assert alone.between.requests == []


def test_a_policy_that_became_stricter_counts_until_the_slot_is_taken(
    alone: Table,
) -> None:
    alone.party()
    stricter = alone.party(policy=replace(ACCEPTING, protocols=frozenset()))
    with pytest.raises(GuardRefused, match="'protocols'"):
        stricter.enrol(alone.parts.data[A])


def assert_only_previewed(table: Table) -> None:
    """The code was shown; nothing was sent, and nothing kept."""
    [request] = table.between.requests
    assert request.url.path == "/v1/join/preview"
    assert (
        request.content
        == json.dumps({"code": table.session.codes[A]}, separators=(",", ":")).encode()
    )
    assert not table.home.exists()


def test_the_session_secret_and_the_entropy_are_never_sent(pair: Table) -> None:
    pair.run()
    secrets = [pair.session.secret, pair.session.keys[A]]
    forms = [form for s in secrets for form in (s, s.hex().encode())]
    for request in pair.between.requests:
        sent = b"\n".join([str(request.url).encode(), request.content])
        sent += b"\n".join(value for pair_ in request.headers.raw for value in pair_)
        assert not any(form in sent for form in forms)


# The agreement: nothing of the data is sent before it holds


def written(agreed: bytes, line: dict[str, Any]) -> bytes:
    session = read_terms(agreed).session
    return roster_entries._build_entry_bytes(
        session, digest(agreed), Member(**line).line
    )


def sit_in(slot: str, secret: bytes) -> Callable[[Any], None]:
    """Sit in another's place with the session secret: the analyst and a party together."""
    who = Institution("", bytes(32))

    def change(document: dict[str, Any]) -> None:
        agreed = document["terms"].encode()
        [line] = [m for m in document["roster"] if m["slot"] == slot]
        session = read_terms(agreed).session
        line["keys"] = PartyKeys(bytes(32), session, slot).public.model_dump()
        line["identity"] = who.key
        signed = written(agreed, line)
        line |= {"mark": compute_mark(secret, signed), "signature": who.sign(signed)}

    return change


@pytest.mark.threat(34)
@pytest.mark.parametrize(
    ("change", "expected", "why"),
    [
        (in_terms(seed=9), AgreementMismatch, "terms changed after they were accepted"),
        (lambda d: d["roster"][1].pop("signature"), Malformed, "not an agreement"),
    ],
    ids=["terms", "no signature"],
)
def test_an_agreement_that_does_not_hold_is_refused(
    pair: Table,
    change: Callable[[dict[str, Any]], object],
    expected: type[CoterieError],
    why: str,
) -> None:
    with pytest.raises(expected, match=why):
        pair.run(on("GET", "/agreement", in_json(change)))
    assert pair.between.sent("/contribution") == []
    assert PartySession(pair.home, pair.session.id, A).journal.round == 0


@pytest.mark.threat(34)
def test_an_analyst_that_takes_an_open_slot_has_another_safety_number(
    pair: Table,
) -> None:
    number = safety_number(pair.session.agreement())
    sitting = on("GET", "/agreement", in_json(sit_in(B, pair.session.secret)))
    with pytest.raises(KeyNotAuthentic, match="elsewhere"):
        pair.run(sitting, safety_number=number)
    assert pair.between.sent("/contribution") == []
    assert pair.party().stored.agreement is None


class Replay:
    """Answers one request for a task with an earlier task, changed or not."""

    def __init__(
        self, after: int, earlier: int, change: Callable[[bytes], bytes] = bytes
    ) -> None:
        self.after = after
        self.earlier = earlier
        self.change = change
        self.tasks: list[bytes] = []

    def __call__(
        self, request: httpx.Request, response: httpx.Response
    ) -> httpx.Response:
        if not request.url.path.endswith("/task") or response.status_code != 200:
            return response
        self.tasks.append(response.content)
        if len(self.tasks) != self.after + 1:
            return response
        return replaced(response, self.change(self.tasks[self.earlier]))


another_task = in_header(lambda h: h["expects"].update(dims={"n": 1}))


@pytest.mark.threat(45)
def test_two_tasks_for_one_round_and_attempt_are_equivocation(alone: Table) -> None:
    replay = Replay(1, 0, another_task)
    with pytest.raises(Equivocation, match="Round 1, attempt 1"):
        alone.run(replay)
    assert len(alone.between.sent("/contribution")) == 1
    # a party that starts again has not forgotten what it was asked
    forged = on("GET", "/task", Mock(return_value=another_task(replay.tasks[0])))
    with pytest.raises(TaskRefused, match="two different tasks"):
        alone.run(forged)
    assert len(alone.between.sent("/contribution")) == 1


def test_a_task_that_came_twice_gets_the_same_bytes_twice(alone: Table) -> None:
    result = alone.run(Replay(1, 0))
    first, second, *_ = sent = alone.between.sent("/contribution")
    assert first == second
    assert len(sent) == 6
    assert result.labels.size == 40


def test_a_task_that_arrives_with_a_receipt_is_also_checked(waiting: Table) -> None:
    first: list[bytes] = []

    def replay(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.method == "GET" and request.url.path.endswith("/task"):
            first.append(response.content)
        elif request.method == "PUT" and response.content and len(first) == 1:
            headers = dict(response.headers) | {"content-length": str(len(first[0]))}
            return httpx.Response(201, headers=headers, content=another_task(first[0]))
        return response

    with pytest.raises((Equivocation, TaskRefused)):
        waiting.run(replay)
    assert len(waiting.between.sent("/contribution")) == 1


def test_a_receipt_is_kept_if_the_next_answer_is_refused(
    waiting: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [None, GuardRefused("Too much in combination.")]
    monkeypatch.setattr(Responder, "_record_use", Mock(side_effect=results))
    with pytest.raises(GuardRefused, match="combination"):
        waiting.run()
    [sending, receipt] = waiting.party().stored.ledger.verified_entries()[-2:]
    assert (sending["event"], receipt["event"]) == ("sending", "receipt")


def test_a_receipt_is_kept_if_the_next_answer_waits_for_a_person(
    waiting: Table,
) -> None:
    stored = waiting.party().stored

    def withdraw(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path.endswith("/contribution"):
            stored.withdraw_consent()
        return response

    asker = Mock(is_present=True)
    asker.approve.side_effect = DecisionPending
    with pytest.raises(DecisionPending):
        waiting.run(withdraw, asker=asker)
    [sending, receipt] = stored.ledger.verified_entries()[-2:]
    assert (sending["event"], receipt["event"]) == ("sending", "receipt")


def test_a_result_is_kept_and_the_analyst_is_not_asked_again(alone: Table) -> None:
    result = alone.run()
    n_requests = len(alone.between.requests)
    again = alone.run()
    assert again.labels.tolist() == result.labels.tolist()
    assert len(alone.between.requests) == n_requests
    with pytest.raises(GuardRefused, match="other data"):
        alone.party().result(np.ones((40, 3)))


def test_a_result_is_of_the_rows_that_joined(
    alone: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotReady, match="no result yet"):
        alone.party().result()
    alone.run()
    few = Mock(return_value=Mock(labels=np.zeros(39)))
    monkeypatch.setattr("clustering_protocols.engine.PartyEngine.conclude", few)
    with pytest.raises(InvalidArray, match="39 labels, 40 rows"):
        alone.party().result()


def cut(ending: str) -> Tamper:
    def tamper(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path.endswith(ending):
            raise httpx.ReadError("lost", request=request)
        return response

    return tamper


@pytest.mark.parametrize(
    "ending", ["/join", "/agreement", "/task", "/contribution", "/result"]
)
@pytest.mark.quick(2)
def test_a_party_that_was_interrupted_goes_on_where_it_was(
    pair: Table, ending: str
) -> None:
    with pytest.raises(Unavailable):
        pair.run(cut(ending))
    assert pair.run().labels.tolist() == [row % 3 for row in range(20)]


@pytest.mark.threat(43, 44)
@pytest.mark.parametrize("ending", ["/join", "/contribution"])
def test_what_was_not_delivered_is_sent_again_byte_for_byte(
    pair: Table, ending: str
) -> None:
    pair.undelivered = ending
    with pytest.raises(Unavailable):
        pair.run()
    pair.undelivered = ""
    pair.run()
    first, second, *_ = pair.between.sent(ending)
    assert first == second


def test_an_upload_that_waits_is_not_sent_after_consent_is_withdrawn(
    pair: Table,
) -> None:
    pair.undelivered = "/contribution"
    with pytest.raises(Unavailable):
        pair.run()
    pair.undelivered, stored = "", pair.party().stored
    stored.withdraw_consent()
    with pytest.raises(GuardRefused, match="You withdrew your consent"):
        pair.run()
    asker = Mock(is_present=True)
    asker.approve.return_value = False
    with pytest.raises(GuardRefused, match="did not approve"):
        pair.run(asker=asker)
    with pytest.raises(GuardRefused, match="an earlier contribution"):
        pair.run()
    assert len(pair.between.sent("/contribution")) == 1, "which was not delivered"
    stored.give_consent()  # to the sheet, not to the contribution that was refused
    with pytest.raises(GuardRefused, match="did not approve"):
        pair.run(asker=asker)
    assert len(pair.between.sent("/contribution")) == 1
    asker.approve.return_value = True
    assert len(pair.run(asker=asker).labels) == 20
    assert asker.approve.call_count == 3, "one yes is to the rest of the session"
    shown = [call.args[0] for call in asker.approve.call_args_list]
    assert shown[0] == shown[1] == shown[2]
    assert "kind" not in shown[0].sentence, "the meaning of each part is known"
    assert (stored.consent.withdrawn_at, stored.consent.is_held) == (None, False)


def test_a_repeated_task_is_not_answered_after_consent_is_withdrawn(
    alone: Table,
) -> None:
    replay, stored = Replay(1, 0), alone.party().stored

    def tamper(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path.endswith("/contribution"):
            stored.withdraw_consent()
        return replay(request, response)

    with pytest.raises(GuardRefused, match="You withdrew your consent"):
        alone.run(tamper)
    assert len(alone.between.sent("/contribution")) == 1


def test_a_report_does_not_change_when_a_program_accepted(
    alone: Table, home: Path
) -> None:
    stored = alone.party().stored
    given = stored.consent
    assert given is not None
    Home(path=home).report(stored)
    assert stored.consent == given


@pytest.mark.threat(44)
def test_other_data_than_it_joined_with_are_refused(pair: Table) -> None:
    """In another order rows would get each other's labels."""
    with pytest.raises(Unavailable):
        pair.run(cut("/agreement"))
    n_requests = len(pair.between.requests)
    source = pair.parts.data[A]
    turned = MatrixSource(
        matrix(source)[::-1], columns=source.columns, ids=(source.ids or ())[::-1]
    )
    for other in (np.ones((19, 3)), turned):
        with pytest.raises(GuardRefused, match=r"joined with other data.*their order"):
            pair.run(data=other)
    assert len(pair.between.requests) == n_requests


OTHER_TRANSFORMER = {"transformer": object()}


@pytest.mark.parametrize(
    ("kept", "given"),
    [
        ({}, {"lifted": 0.9}),
        ({"lifted": 0.1}, {"lifted": 0.9}),
        ({"limit": 0.1}, {}),
        ({"limit": 0.1}, {"limit": 0.1}),
        (OTHER_TRANSFORMER, OTHER_TRANSFORMER),
    ],
)
def test_a_party_goes_on_with_the_choices_that_it_began_with(
    kept: dict[str, Any], given: dict[str, Any]
) -> None:
    remembered = json.loads(json.dumps(describe_choices(kept)))
    assert merge_choices(remembered, given, ["lifted"]) == {**kept, **given}


@pytest.mark.parametrize(
    ("kept", "given"),
    [
        ({"limit": 0.1}, {"limit": 0.9}),
        ({}, {"limit": 0.9}),
        (OTHER_TRANSFORMER, {}),
    ],
)
def test_other_choices_than_a_party_began_with_are_refused(
    kept: dict[str, Any], given: dict[str, Any]
) -> None:
    remembered = json.loads(json.dumps(describe_choices(kept)))
    with pytest.raises(GuardRefused, match="|".join({**kept, **given})):
        merge_choices(remembered, given, ["lifted"])


ALL = DataCollaboration(n_clusters=2, dimensions="all")


def asking(running: Api, home: Path) -> tuple[Table, Policy]:
    accepted = frozenset({*terms(ALL).risks, "house.open-slot"})
    policy = Policy(accepted_risks=accepted, least_known=0)
    return Table(running, home, PAIR, ALL), policy


@pytest.mark.threat(104)
def test_a_contribution_in_question_waits_for_agreement(
    running: Api, home: Path
) -> None:
    table, policy = asking(running, home)
    notes: list[Any] = []
    with pytest.raises(GuardRefused, match="--choice rebuild_limit=1"):
        table.run(policy=policy, asker=Mock(is_present=False, show_notes=notes.append))
    assert "with 'all_but_one' it would be" in str(notes[-1])
    sent = len(table.between.sent("/contributions"))
    with pytest.raises(GuardRefused, match=r"'rebuild_limit' is 20\.0%"):
        table.run(policy=policy, choices={"rebuild_limit": 0.2})
    assert len(table.between.sent("/contributions")) == sent
    with pytest.raises(GuardRefused, match="joined with different choices: transf"):
        table.run(policy=policy, choices={"transformer": object()})
    assert len(table.run(policy=policy, choices={"rebuild_limit": 1}).labels) == 20


def test_approval_is_void_if_consent_is_withdrawn_before_it(
    running: Api, home: Path
) -> None:
    table, policy = asking(running, home)
    stored, asker = table.party(policy=policy).stored, Mock(is_present=True)

    def withdraw_and_approve(_: Any) -> bool:
        stored.withdraw_consent()
        return True

    asker.approve.side_effect = withdraw_and_approve
    with pytest.raises(GuardRefused, match="You withdrew your consent"):
        table.run(policy=policy, asker=asker)
    assert asker.approve.call_count == 1
    assert stored.consent.withdrawn_at is not None

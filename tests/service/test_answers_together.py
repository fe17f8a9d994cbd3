"""Answers that are stored in one transaction, and tasks that are handed out in one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pytest
import sqlalchemy as sa

from analyst_service.blobs.files import FileDraft
from analyst_service.contributions import endpoints
from analyst_service.contributions.service import OpenTask, TaskRequest, Upload
from analyst_service.credentials import authenticate
from analyst_service.storage.models import Contribution
from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    ContributionDiffers,
    NotFound,
    RoundClosed,
    StorageFull,
    Unauthenticated,
)
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PARTS.layout.names


@pytest.fixture
def session(api: Api) -> ByHand:
    return api.open(Dummy(), PARTS).join()


def arrived(session: ByHand, slot: str, content: bytes) -> Upload:
    draft = session.api.service.blobs.draft()
    draft.write(content)
    digest, here = draft.seal(), packets.read(content).address
    where = here.session, here.round, here.attempt
    caller = session.api.caller(session.tokens[slot])
    return Upload(caller, *where, digest, draft.size, draft=draft)


def events(session: ByHand) -> Counter[str]:
    answer = session.api.send("GET", f"{session.path}/audit", session.key)
    lines = answer.json()["lines"]
    return Counter(line.partition('"event":"')[2].partition('"')[0] for line in lines)


class Refused(FileDraft):
    """What arrived for an answer that is refused."""

    def __init__(self) -> None:
        pass

    def keep(self) -> NoReturn:
        raise AssertionError("nothing of a refused answer is kept")


class Full(Refused):
    def keep(self) -> NoReturn:
        raise StorageFull("there is no room")


def test_of_answers_that_come_together_each_gets_its_own_outcome(
    session: ByHand,
) -> None:
    contents = {slot: session.reply(slot) for slot in (A, B)}
    one, two = (arrived(session, slot, contents[slot]) for slot in (A, B))
    stranger = replace(two.caller, credential_id="revoked")
    late = replace(two, round=7, draft=Refused())
    elsewhere = replace(two, session="another", draft=Refused())
    found = endpoints._keep(
        session.api.service,
        [
            replace(two, caller=stranger, draft=Refused()),
            one,
            elsewhere,
            replace(one, draft=Refused()),
            replace(one, digest="0" * 64, draft=Refused()),
            late,
            replace(two, draft=Full()),
        ],
    )
    assert [type(each) for each in found] == [
        Unauthenticated,
        tuple,
        NotFound,
        tuple,
        ContributionDiffers,
        RoundClosed,
        StorageFull,
    ]
    stored, again = found[1], found[3]
    assert isinstance(stored, tuple)
    assert isinstance(stored[0], Contribution)
    assert again == (stored[0], False)
    assert stored[1], "the first of the same bytes is new"
    assert session.put(A, contents[A]).json()["entry"] == stored[0].entry
    assert events(session)["contribution"] == 1
    later = endpoints._keep(session.api.service, [two])
    assert isinstance(later[0], tuple), "what was refused for want of room may come"


def test_tasks_are_handed_out_together_and_noted_once(session: ByHand) -> None:
    service, name = session.api.service, session.path.rpartition("/")[2]
    asking = [
        TaskRequest(session.api.caller(session.tokens[slot]), name) for slot in (A, B)
    ]
    revoked = TaskRequest(replace(asking[0].caller, credential_id="revoked"), name)
    asked = [*asking, revoked, TaskRequest(asking[0].caller, "another"), asking[0]]
    found = endpoints.open_tasks(service, asked)
    assert [type(each) for each in found] == [
        OpenTask,
        OpenTask,
        Unauthenticated,
        NotFound,
        OpenTask,
    ]
    endpoints.open_tasks(service, asked)
    assert events(session)["task-sent"] == 2
    session.put(A, session.reply(A))
    assert endpoints.open_tasks(service, asking)[0] is None


def test_simultaneous_uploads_share_one_query_and_one_lock(
    each_api: Api,
) -> None:
    session = each_api.open(Dummy(), PARTS).join()
    service = session.api.service
    asked: list[str] = []
    sa.event.listen(
        service.database.engine,
        "before_cursor_execute",
        lambda _connection, _cursor, statement, *_: asked.append(statement),
    )
    shown = [f"Bearer {session.tokens[A]}", "Bearer x", f"Bearer {session.tokens[B]}"]
    found = service.database.query(authenticate, [*shown, "", None])
    assert [getattr(each, "slot", None) for each in found] == [A, None, B, None, None]
    assert sum("credentials" in statement for statement in asked) == 1
    both = [arrived(session, slot, session.reply(slot)) for slot in (A, B)]
    asked.clear()
    assert [is_new for _, is_new in endpoints._keep(service, both)] == [True, True]
    assert sum("FOR UPDATE" in statement for statement in asked) <= 1

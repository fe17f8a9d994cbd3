"""Lists of sessions: order, pages, filters, and the commands that use them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.in_process import Api

from analyst_service.credentials import Role, create_key
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import VersionMismatch
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.wire.answers import SessionPage
from party_sdk.analyst_client.http_analyst import HttpAnalyst
from party_sdk.cli.session.commands import delete, list_sessions
from party_sdk.coordinator.coordinator import Coordinator
from tests.service.samples import PARTS, A, B

OWNERS, EACH = 3, 20


def open_and_cancel(api: Api, terms: dict[str, Any]) -> dict[str, list[str]]:
    """Open and cancel sessions, one a second; return their ids by owner."""
    ids: dict[str, list[str]] = {}
    for owner in range(OWNERS):
        named = (Role.COORDINATOR, f"Institute {owner}", 10**8)
        owner_id, key = api.service.database.transact(create_key, *named)
        ids[owner_id] = [f"s-{owner}-{number}" for number in reversed(range(EACH))]
        for name in reversed(ids[owner_id]):
            path = f"/v1/sessions/{name}"
            assert api.send("PUT", path, key, json=terms).status_code == 201
            assert api.send("POST", f"{path}/cancel", key).status_code == 200
            api.clock.forward(1)
    return ids


def commanding(api: Api, key: str, home: Path) -> Callable[..., Result]:
    coordinator = Coordinator("", key, home=home, analyst=api.connect())
    return lambda command, *words, **more: CliRunner().invoke(
        command, words, obj=lambda: coordinator, **more
    )


def listed(api: Api, key: str, **query: Any) -> list[str]:
    """Return the ids on all pages, following each page's cursor."""
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        sent = {"limit": 100, **query, "after": after}
        page = api.send("GET", "/v1/sessions", key, params=sent)
        assert page.status_code == 200, page.text
        found += [line["id"] for line in page.json()["sessions"]]
        after = page.json()["next"]
    return found


@pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.COORDINATOR])
def test_the_running_session_of_many_is_on_page_one(
    each_api: Api, tmp_path: Path, role: Role
) -> None:
    api = each_api
    session = api.open(Dummy(), PARTS).join(A)
    ended = open_and_cancel(api, session.terms)
    api.clock.forward(3600 - OWNERS * EACH)
    session.join(B)  # a round opens, and waits
    session.answer(A, turn=False)
    key = api.key(role) if role is Role.ADMINISTRATOR else session.key
    first = api.send("GET", "/v1/sessions", key).json()["sessions"]
    assert (first[0]["id"], first[0]["state"]) == (session.id, "collecting")
    assert first[0]["awaited"] == [B]
    assert first[0]["waiting_since"].startswith("2026-03-01T01:00")
    assert (first[0]["owner"], first[0]["protocol"]) == ("tests", "dummy")
    run = commanding(api, key, tmp_path / "home")
    lines = run(list_sessions).stdout.splitlines()
    assert lines[1].split()[:2] == [session.id, "collecting"]
    assert B in lines[1]
    if role is Role.ADMINISTRATOR:
        assert len(lines) == 2 + OWNERS * EACH
        assert len(first) == 50
        assert listed(api, key) == [line.split()[0] for line in lines[1:]]
        assert listed(api, key, state="open") == [session.id]
        _, second, _ = ended
        assert listed(api, key, owner="Institute 1") == ended[second]
        assert listed(api, key, owner=second) == ended[second]
    else:
        assert len(lines) == 2
        assert listed(api, key, owner="Institute 1") == []
        # another owner calls one alike, and a cursor tells neither of the other
        other = api.key()
        api.send("PUT", session.path, other, json=session.terms)
        page = api.send("GET", "/v1/sessions", other, params={"limit": 1}).json()
        assert page["next"].partition("~")[2] == session.id


def test_every_filter_holds_alone_and_together_for_every_reader(
    each_api: Api, tmp_path: Path
) -> None:
    api = each_api
    waits = api.open(Dummy(), PARTS)
    api.clock.forward(86_400)
    ended = api.open(Dummy(), PARTS).join()
    ended.cancel()
    api.clock.forward(86_400)
    late = api.open(Dummy(), PARTS).join(A)
    api.clock.forward(3600)
    key, all_ = api.key(Role.ADMINISTRATOR), [late.id, ended.id, waits.id]
    middle = "2026-03-02T00:00:00Z"
    expected: list[tuple[dict[str, str], list[str]]] = [
        ({}, all_),
        ({"state": "open"}, [late.id, waits.id]),
        ({"state": "over"}, [ended.id]),
        ({"state": "cancelled"}, [ended.id]),
        ({"state": "completed"}, []),
        ({"changed_since": middle}, [late.id, ended.id]),
        ({"changed_before": middle}, [waits.id]),
        (
            {"changed_since": middle, "changed_before": "2026-03-02T00:00:01Z"},
            [ended.id],
        ),
    ]
    for filters, ids in expected:
        assert listed(api, key, limit=1, **filters) == ids, filters
    run = commanding(api, key, tmp_path / "home")
    done = run(list_sessions, "--json", "--state", "open", "--since", middle)
    assert [line["id"] for line in json.loads(done.stdout)] == [late.id]
    assert "1 more" not in run(list_sessions, "--limit", "2").stdout
    assert len(run(list_sessions, "--limit", "2").stdout.splitlines()) == 3
    assert "No session found" in run(list_sessions, "--state", "failed").stderr


def test_a_filter_that_fits_nothing_is_refused(api: Api) -> None:
    for query in (
        {"after": "s-1"},  # of a release that listed by id
        *({"after": "1~"}, {"after": f"{'9' * 18}~s-1"}, {"state": "stuck"}),
        *({"owner": "a\0"}, {"owner": "x" * 201}),
        {"changed_since": "2026-03-01T00:00:00"},
        {"changed_since": "0001-01-01T00:00:00+14:00"},
        {"changed_before": "9999-12-31T23:59:59-14:00"},
    ):
        refusal = api.send("GET", "/v1/sessions", api.key(), params=query)
        assert refusal.status_code == 422
        assert refusal.json()["type"] == Problem.INVALID_PARAMETERS.urn


def test_a_session_that_moves_between_two_pages_hides_no_other(each_api: Api) -> None:
    api = each_api
    first = api.open(Dummy(), PARTS)
    others = [api.open(Dummy(), PARTS) for _ in range(4)]
    ids = [each.id for each in (first, *others)]  # all of one moment
    key, query = api.key(Role.ADMINISTRATOR), {"limit": "2"}
    page = api.send("GET", "/v1/sessions", key, params=query).json()
    seen = [line["id"] for line in page["sessions"]]
    api.clock.forward(1)
    moved = next(each for each in ids if each not in seen)
    api.send("POST", f"/v1/sessions/{moved}/cancel", key)
    new = api.open(Dummy(), PARTS)
    while page["next"]:
        query["after"] = page["next"]
        page = api.send("GET", "/v1/sessions", key, params=query).json()
        seen += [line["id"] for line in page["sessions"]]
    assert sorted(seen) == sorted(set(ids) - {moved})
    assert set(listed(api, key)[:2]) == {moved, new.id}


def test_an_analyst_that_cannot_filter_is_not_believed(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = api.open(Dummy(), PARTS)
    sent = HttpAnalyst.sessions

    def older(self: HttpAnalyst, after: str = "", filters: Any = ()) -> SessionPage:
        del filters
        page = sent(self, after)
        lines = [
            each.model_copy(update={"waiting_since": None}) for each in page.sessions
        ]
        return page.model_copy(update={"sessions": lines})

    monkeypatch.setattr(HttpAnalyst, "sessions", older)
    run = commanding(api, session.key, tmp_path / "home")
    assert session.id in run(list_sessions).stdout
    refused = run(delete, "--ended-before", "0d", "--yes")
    assert isinstance(refused.exception, VersionMismatch)
    assert session.status["state"] == "recruiting"


def test_one_command_deletes_sessions_ended_before_a_time(
    api: Api, tmp_path: Path
) -> None:
    old, runs = api.open(Dummy(), PARTS), api.open(Dummy(), PARTS)
    key = api.key(Role.ADMINISTRATOR)
    old.cancel()
    api.clock.forward(86_400)
    late = api.open(Dummy(), PARTS)
    late.cancel()
    run = commanding(api, key, tmp_path / "home")
    words = ("--ended-before", "2026-03-02")
    asked = run(delete, *words, input="n\n")
    assert "of 1 ended sessions?" in asked.output
    assert asked.exit_code == 1
    assert old.status["state"] == "cancelled"
    assert run(delete, *words, "--yes").exit_code == 0
    assert set(listed(api, key)) == {runs.id, late.id}
    assert "No session ended" in run(delete, *words, "--yes").stderr
    assert run(delete).exit_code == 2
    assert run(delete, late.id, *words).exit_code == 2

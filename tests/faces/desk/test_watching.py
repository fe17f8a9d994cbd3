"""One session at its coordinator's desk: watched, changed, filed and repeated."""

from io import BytesIO
from pathlib import Path
from unittest.mock import Mock
from zipfile import ZipFile

import pytest
from support.analyst_process import Analyst
from support.browsing import texts
from support.desks import DeskBrowser

from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import hash_chain
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator
from tests.faces.desk.plans import HOSTILE, invitations, opened


def test_a_session_is_watched_extended_and_cancelled(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    made = opened(desk, title=HOSTILE)
    session = made[0].session
    here = f"/sessions/{session}"
    page = desk.get(here)
    assert HOSTILE in (said := texts(page))
    assert "<script>document" not in page.text
    assert "north, south, west" in said
    assert "North Clinic" in said
    assert "the chain is intact" in said
    assert 'data-hx-get="/drawn/sessions' in page.text
    before = coordinator.session(session).status().deadline
    assert desk.post(f"{here}/deadline", {"days": "7"}).status_code == 303
    after = coordinator.session(session).status().deadline
    assert (after - before).days == 7
    assert "at most 366" in texts(desk.post(f"{here}/deadline", {"days": "367"}))
    assert "whole number" in texts(desk.post(f"{here}/deadline", {"days": "-1"}))
    early = desk.post(f"{here}/choice", {"n_clusters": "3"})
    assert 'class="notice bad"' in early.text
    assert HOSTILE in texts(desk.get(f"{here}/report"))
    archived = desk.get(f"{here}/archive.zip")
    assert archived.headers["content-disposition"].startswith("attachment")
    files = ZipFile(BytesIO(archived.content))
    assert f"{session}/terms.json" in files.namelist()
    assert b'"log":"audit"' in files.read(f"{session}/audit.json")
    assert b"owned" in files.read(f"{session}/report.html")
    over = desk.follow(desk.post(f"{here}/cancel", {}))
    assert "cancelled" in texts(over)
    assert "The session ended without figures" in texts(over)
    assert "published in this session" not in texts(over)
    assert "data-hx-get" not in over.text
    assert HOSTILE in texts(desk.get("/sessions"))


def test_a_page_reads_the_audit_once(
    desk: DeskBrowser, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long session that is most of the work; the client has checked it before."""
    session = coordinator.create_session("Wards", Dummy(), Layout.lattice(2))
    read = Mock(wraps=hash_chain.read)
    monkeypatch.setattr(hash_chain, "read", read)
    session.audit()
    before = read.call_count
    assert "the chain is intact" in texts(desk.get(f"/sessions/{session.id}"))
    assert read.call_count == 2 * before + 1


def test_new_invitations_end_the_earlier_ones(desk: DeskBrowser) -> None:
    made = opened(desk)
    here = f"/sessions/{made[0].session}/invitations"
    assert "North Clinic" in texts(desk.get(here))
    assert "Tick a place" in texts(desk.post(here, {}))
    [again] = invitations(desk.post(here, {"slot": "north"}))
    assert (again.slot, again.code != made[0].code) == ("north", True)
    assert again.secret == made[0].secret


def test_sessions_of_others_and_of_no_name_are_not_there(
    desk: DeskBrowser, tmp_path: Path, analyst: Analyst
) -> None:
    assert desk.get("/sessions/nothing").status_code == 404
    assert desk.get("/sessions/..%2f..%2fetc").status_code == 404
    assert desk.get("/sessions/UPPER").status_code == 404
    with analyst.coordinator(tmp_path / "elsewhere") as other:
        away = other.create_session("Elsewhere", Dummy(), Layout.lattice(2))
    page = desk.get(f"/sessions/{away.id}")
    assert "opened elsewhere" in texts(page)
    assert desk.get(f"/sessions/{away.id}/invitations").status_code == 409

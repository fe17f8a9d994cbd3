"""What `party terms`, `party report`, and `session report` say."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Analyst
from support.terminal import coterie

from clustering_protocols import catalogue
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.signed_logs import SignedLog
from clustering_protocols.terms.terms import read_terms
from coterie_pages.models import RunReport, SessionReport, TermsSheet
from party_sdk.advice import layout_of
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.coordinator.session import StoredSession
from party_sdk.party.party_index import slots_of
from party_sdk.party.party_session import PartySession
from party_sdk.reports.run_reports import find_method, partitioning_of

SLOT = "r1c1"


class Desk(NamedTuple):
    """One home, from which a coordinator and the only party of a session act."""

    folder: Path
    environment: dict[str, str]
    session: str
    invitation: str
    accept: tuple[str, ...]
    rows: tuple[str, ...]

    def __call__(self, *words: object, expect: int = 0) -> str:
        return coterie(*words, expect=expect, env=self.environment).stdout

    def run(self) -> Any:
        labels = ("--labels", self.folder / "labels.csv", "--force")
        words = ("party", "run", self.invitation, *self.rows, *labels, *self.accept)
        return json.loads(self(*words, "--json"))

    def labels(self) -> np.ndarray:
        lines = (self.folder / "labels.csv").read_text().splitlines()[1:]
        return np.array([int(line.rpartition(",")[2]) for line in lines])


def opened_by(
    analyst: Analyst, folder: Path, session: str, fields: Any, *create: str
) -> Desk:
    """A session of `dc` over rows.csv, for one party that has not joined yet."""
    (folder / "rows.json").write_text(json.dumps({"fields": fields}))
    environment = {
        "COTERIE_URL": analyst.url,
        "COTERIE_KEY": analyst.key,
        "COTERIE_HOME": str(folder / "home"),
    }
    blank = Desk(folder, environment, session, "", (), ())
    words = ("session", "create", *create, "--id", session, "--seed", "1", "--json")
    params = ("--protocol", "dc", "--param", "dimensions=all_but_one")
    told = ("--schema", folder / "rows.json", "--profiles", "members")
    invitation = json.loads(blank(*words, *params, *told))["invitations"][SLOT]
    sheet = json.loads(blank("party", "terms", invitation, "--json"))
    return blank._replace(
        invitation=invitation,
        accept=("--accept", sheet["consent"]),
        rows=("--data", str(folder / "rows.csv"), "--id-column", "id"),
    )


def opened(analyst: Analyst, folder: Path, session: str, *more: str) -> Desk:
    """Such a session with two runs."""
    X = load_wine().data[:60, :4]
    lines = [",".join(map(str, [f"w{n:03}", *row])) for n, row in enumerate(X)]
    (folder / "rows.csv").write_text("\n".join(["id,a,b,c,d", *lines]) + "\n")
    about = ("--purpose", "To compare", "--contact", "office@north.example")
    create = ("Wine & <b>more</b>", *about, "--clusters", "2..3", *more)
    fields = [{"name": name} for name in "abcd"]
    return opened_by(analyst, folder, session, fields, *create)


@pytest.mark.quick(1)
def test_rows_of_no_cluster_are_counted_at_the_end(
    analyst: Analyst, tmp_path: Path, session_id: str
) -> None:
    desk = opened(analyst, tmp_path, session_id, "--missing", "drop")
    path = desk.folder / "rows.csv"
    lines = path.read_text().splitlines()
    lines[5] = f"{lines[5].rpartition(',')[0]},"
    path.write_text("\n".join(lines) + "\n")
    labels = ("--labels", desk.folder / "labels.csv")
    words = ("party", "run", desk.invitation, *desk.rows, *labels, *desk.accept)
    said = desk(*words)
    assert "label -1: 1 of your rows is in no cluster, or did not take part" in said
    assert list(desk.labels()).count(-1) == 1


class Ran(NamedTuple):
    """A session before and after its run, and what the run told."""

    early: str
    told: Any
    desk: Desk


@pytest.fixture(scope="module")
def ran(analyst_of_the_file: Analyst, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    desk = opened(analyst_of_the_file, tmp_path_factory.mktemp("ran"), "s-ran")
    early = desk("session", "report", desk.session, "--json")
    return Ran(early, desk.run(), desk)


@pytest.fixture
def told(ran: Ran) -> Any:
    return ran.told


@pytest.fixture
def desk(ran: Ran, tmp_path: Path) -> Desk:
    """A copy of the home from which the session was run, for one test."""
    folder = tmp_path / "desk"
    shutil.copytree(ran.desk.folder, folder)
    return ran.desk._replace(
        folder=folder,
        environment={**ran.desk.environment, "COTERIE_HOME": str(folder / "home")},
        rows=("--data", str(folder / "rows.csv"), "--id-column", "id"),
    )


def test_terms_are_read_before_anybody_joins(
    analyst: Analyst, tmp_path: Path, session_id: str
) -> None:
    desk = opened(analyst, tmp_path, session_id)
    sheet = TermsSheet.model_validate_json(
        desk("party", "terms", desk.invitation, "--json")
    )
    parsed = Invitation.parse(desk.invitation)
    assert (sheet.digest, sheet.slot) == (parsed.terms, SLOT)
    assert sheet.url == parsed.url
    assert sheet.consent == desk.accept[1]
    assert sheet.coordinator is not None
    shown = desk("party", "terms", desk.invitation)
    assert all(risk.sentence in " ".join(shown.split()) for risk in sheet.risks)
    assert sheet.consent in shown
    assert "Signature" in shown
    assert slots_of(desk.folder / "home", session_id) == [], "nothing was joined"

    page = desk.folder / "terms.html"
    desk("party", "terms", desk.invitation, "--out", page)
    html = page.read_text()
    assert parsed.terms in html
    assert "Wine &amp; &lt;b&gt;more&lt;/b&gt;" in html
    assert parsed.code not in html + shown
    assert parsed.secret.hex() not in html + shown
    desk("party", "terms", desk.invitation, "--out", page, expect=3)
    desk("party", "terms", desk.invitation, "--out", page, "--force")


def test_a_manifest_for_a_paper_names_no_row(desk: Desk, told: Any) -> None:
    path = desk.folder / "manifest.json"
    desk("party", "report", desk.session, "--out", path)
    text = path.read_text()
    made = json.loads(text)
    terms = read_terms(json.dumps(made["terms"]).encode())
    assert made["public_seed"] == terms.seed == 1
    assert made["session"] == terms.session == desk.session
    assert made["terms_sha256"] == Invitation.parse(desk.invitation).terms
    assert made["versions"]["protocol"] == {"dc": terms.protocol.version}
    assert made["result"]["sizes"] == told["cluster_sizes"]
    assert len(made["result"]["runs"]) == 2
    assert re.fullmatch("[0-9a-f]{64}", made["table_keyed_digest"])
    party = PartySession(desk.folder / "home", desk.session, "r1c1")
    digest_of_rows = party.load_identity().data_digest
    assert digest_of_rows  # anybody could try values by it
    assert digest_of_rows not in text
    assert "w000" not in text
    path.write_text("somebody's own")
    desk("party", "report", desk.session, "--out", path, expect=3)
    assert path.read_text() == "somebody's own"
    desk("party", "report", desk.session, "--out", path, "--force")
    assert path.read_text() == text


def test_a_party_reports_its_run_also_when_the_rest_is_forgotten(
    desk: Desk, told: Any
) -> None:
    labels = desk.labels()
    made = RunReport.model_validate_json(
        desk("party", "report", desk.session, *desk.rows, "--json")
    )
    assert made.complete
    assert sum(made.own_sizes) == 60
    assert list(made.own_sizes) == np.bincount(labels).tolist()
    assert list(made.sizes) == told["cluster_sizes"]
    assert [(run.n_clusters, run.chosen) for run in made.runs] == [
        (run["n_clusters"], run["chosen"]) for run in told["runs"]
    ]
    assert made.safety_number == told["safety_number"]
    assert json.loads(made.model_dump_json())["profiles"] == told["profiles"]
    [profile] = made.profiles
    assert {field.name for field in profile.fields} == set("abcd")
    assert list(made.points.labels) == labels.tolist()
    assert made.sheet is not None
    sent = [line for line in made.left if line.event == "sending"]
    receipts = [line for line in made.left if line.event == "receipt"]
    assert [line.digest for line in sent] == [line.digest for line in receipts]
    assert all(line.signed for line in receipts)
    assert not set(told["columns"]) - {"a", "b", "c", "d"}

    whole = desk("party", "report", desk.invitation, "--json")
    assert "w001" not in whole, "no ids"
    before = RunReport.model_validate_json(whole)
    assert before == made.model_copy(update={"points": None})
    desk("party", "forget", desk.session, SLOT, "--yes")
    after = desk("party", "report", desk.session, SLOT, "--json")
    assert RunReport.model_validate_json(after) == before
    assert made.safety_number in desk("party", "status", desk.session, SLOT)
    audit = SignedLog.read(
        desk("party", "audit", desk.session, SLOT, "--json").encode()
    )
    assert len(audit.verified_entries()) == len(made.left)
    desk("party", "report", desk.session, *desk.rows, expect=7)
    desk("party", "run", desk.session, SLOT, *desk.rows, expect=7)
    desk("party", "forget", desk.session, SLOT, "--all", "--yes")
    desk("party", "report", desk.session, SLOT, expect=7)
    desk("party", "audit", desk.session, SLOT, expect=7)


def test_another_table_is_not_drawn(desk: Desk) -> None:
    page = desk.folder / "report.html"
    rows = desk.folder / "rows.csv"
    rows.write_text(rows.read_text().replace("w001,", "w901,"))
    desk("party", "report", desk.session, *desk.rows, "--out", page, expect=3)
    assert not page.exists()
    for _ in range(2):  # what the session wrote it may write again
        desk("party", "report", desk.session, "--out", page)
    assert "Wine &amp; &lt;b&gt;more&lt;/b&gt;" in page.read_text()
    page.write_text("mine")
    desk("party", "report", desk.session, "--out", page, expect=3)


def test_a_coordinator_reports_and_exports_all_that_it_may_read(
    desk: Desk, ran: Ran, told: Any
) -> None:
    early = SessionReport.model_validate_json(ran.early)
    assert (early.state, early.safety_number, early.sizes) == ("recruiting", "", ())
    assert [seat.state for seat in early.seats] == ["invited"]
    made = SessionReport.model_validate_json(
        desk("session", "report", desk.session, "--json")
    )
    assert made.state == "completed"
    assert list(made.sizes) == told["cluster_sizes"]
    assert made.safety_number == told["safety_number"]
    assert {line.event for line in made.audit} >= {"opened", "all-joined"}

    shown = json.loads(desk("session", "show", desk.session, "--json"))
    assert shown["result"]["cluster_sizes"] == told["cluster_sizes"]
    assert shown["result"]["inertia"] > 0
    assert "labels" not in shown["result"]

    archive = desk.folder / "session.zip"
    desk("session", "report", desk.session, "--out", archive)
    with ZipFile(archive) as found:
        files = {name.partition("/")[2]: found.read(name) for name in found.namelist()}
    names = ("agreement", "audit", "report", "result", "status", "terms")
    assert files.keys() == {*(f"{name}.json" for name in names), "report.html"}
    assert digest(files["terms.json"]) == Invitation.parse(desk.invitation).terms
    assert sha256(files["agreement.json"]).hexdigest() == made.agreement
    archived = SessionReport.model_validate_json(files["report.json"])
    log = SignedLog.read(files["audit.json"])
    assert (
        len(log.verified_entries()) == len(archived.audit) > len(made.audit)
    )  # it was read
    assert archived.model_copy(update={"audit": made.audit}) == made
    stored = StoredSession.load(desk.folder / "home", desk.session)
    secret = stored.entropy
    assert not [name for name, content in files.items() if secret.encode() in content]
    desk("session", "report", desk.session, "--out", archive, expect=3)


def test_a_report_elsewhere_has_only_what_can_be_checked(desk: Desk) -> None:
    desk.environment["COTERIE_HOME"] = str(desk.folder / "elsewhere")
    found = SessionReport.model_validate_json(
        desk("session", "report", desk.session, "--json")
    )
    assert (found.sheet, found.safety_number, found.sizes) == (None, "", ())
    assert found.audit
    assert "result" not in json.loads(desk("session", "show", desk.session, "--json"))


def test_every_way_that_was_measured_is_found_by_its_parameters() -> None:
    for name, known in catalogue.catalogue().items():
        for way in known.methods:
            for partitioning in way.partitionings:
                params = catalogue.parse_params(name, way.recommended_params(3))
                layout = layout_of(partitioning, 4)
                found = find_method(name, params, partitioning_of(layout))
                assert (found.params, found.agreement) == (way.params, way.agreement)

"""A coordinator at the desk, form by form, beside a real analyst."""

import json
from typing import Any

import httpx
import pytest
from support.analyst_process import Analyst
from support.browsing import texts, tree
from support.desks import DeskBrowser

from clustering_protocols.common.errors import Unavailable
from clustering_protocols.terms.canonical import digest
from coterie import Coordinator
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.application.home import Offer
from party_sdk.coordinator.coordinator import DrawnTerms
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.home.identities import OwnIdentity, TrustedInstitutions, pin_analyst
from tests.faces.desk.plans import (
    HOSTILE,
    NEW,
    accepted,
    invitations,
    open_reviewed,
    plan,
    sent,
    wrong,
)

# Analyst and key


def test_a_key_is_taken_once_and_never_shown(
    browser: DeskBrowser, analyst: Analyst
) -> None:
    first = browser.get("/sessions")
    assert first.headers["location"].endswith("/sessions/-/analyst")
    form = {"url": analyst.url, "key": analyst.key}
    assert "no valid credential" in texts(
        browser.post("/sessions/-/analyst", {**form, "key": "ck_wrong"})
    )
    listed = browser.follow(browser.post("/sessions/-/analyst", form))
    assert analyst.url in texts(listed)
    pages = [listed, browser.get("/sessions/-/analyst"), browser.get(NEW)]
    for page in pages:
        assert analyst.key not in page.text
    assert analyst.key not in repr(browser.desk)
    kept = [path for path in browser.desk.home.rglob("*") if path.is_file()]
    assert all(analyst.key.encode() not in path.read_bytes() for path in kept)
    assert browser.said == []
    browser.post("/sessions/-/analyst/forget", {})
    assert browser.get("/sessions").status_code == 303


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("analyst.example", "write https://analyst.example."),
        ("http://analyst.example", "Plain http would show the token"),
    ],
)
def test_an_address_that_is_none_stays_in_its_field(
    browser: DeskBrowser, url: str, said: str
) -> None:
    page = browser.post("/sessions/-/analyst", {"url": url, "key": "ck_x"})
    assert said in wrong(page)["url"]
    [field] = [e for e in tree(page).iter("input") if e.attrib.get("name") == "url"]
    assert field.attrib["value"] == url


def test_a_changed_analyst_key_needs_confirmation(
    browser: DeskBrowser, analyst: Analyst
) -> None:
    pin_analyst(browser.desk.home, analyst.url, "0" * 64)
    form = {"url": analyst.url, "key": analyst.key}
    page = browser.post("/sessions/-/analyst", form)
    assert "has the key" in wrong(page)["url"]
    assert not browser.desk.connection.key
    again = browser.post("/sessions/-/analyst", {**form, "changed": "yes"})
    assert again.status_code == 303


@pytest.mark.parametrize("url", ["https://analyst.invalid", "nonsense"])
def test_an_analyst_that_cannot_be_reached_can_be_replaced(
    browser: DeskBrowser, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("party_sdk.desk.responses._PATIENCE", 0.0)
    browser.desk.connection.set_analyst(url, "ck_x")
    page = browser.get("/sessions")
    assert page.status_code >= 400
    links = [each.attrib["href"] for each in tree(page).iter("a")]
    assert "/drawn/sessions/-/analyst" in links


@pytest.mark.parametrize(
    ("changed", "name", "said"),
    [
        ({"title": ""}, "title", "Describe the session"),
        ({"title": "x" * 201}, "title", "at most 200"),
        ({"param_n_clusters": "0"}, "param.n_clusters", "at least 1"),
        ({"param_n_clusters": "many"}, "param.n_clusters", "whole number"),
        ({"param_tol": "-1"}, "param.tol", "at least 0"),
        ({"choose": "later"}, "choose", "Give several"),
        ({"title": "DC", "protocol": "dc"}, "param.dimensions", "drops one dim"),
        (
            {"param_n_clusters": "2..4", "choose": "silhouette"},
            "choose",
            "not compute 'silhouette'",
        ),
        ({"join_days": "soon"}, "join_days", "number of days"),
        ({"answer_days": "367"}, "answer_days", "number of days"),
        ({"minimum_rows": "few"}, "minimum_rows", "whole number"),
        ({"profile_rows": "7"}, "profile_rows", "Say who reads the profiles"),
        ({"profiles": "members"}, "profiles", "need a dictionary"),
        ({"profiles": "members", "profile_rows": "4"}, "profile_rows", "at least 5"),
        ({"missing": "drop"}, "missing", "needs a dictionary"),
        ({"dictionary_1": "no.json"}, "dictionary.1", "no dictionary 'no.json'"),
        ({"table_1": "no.csv"}, "table.1", "no.csv"),
    ],
)
def test_errors_stand_at_their_fields_and_input_is_kept(
    desk: DeskBrowser,
    coordinator: Coordinator,
    changed: dict[str, str],
    name: str,
    said: str,
) -> None:
    before = len(coordinator.sessions())
    page = desk.post(NEW, plan(purpose="Care & cure", **changed))
    assert said in wrong(page)[name]
    values = [
        each.attrib.get("value")
        for kind in ("input", "option")
        for each in tree(page).iter(kind)
    ]
    assert "Care & cure" in values
    typed = next(iter(changed.values()))
    assert typed in values or name in {"choose", "profiles", "missing"} or not typed
    assert len(coordinator.sessions()) == before


def heading(page: httpx.Response) -> str:
    [found] = tree(page).iter("h1")
    return "".join(found.itertext())


def onward(desk: DeskBrowser, page: httpx.Response, **typed: Any) -> httpx.Response:
    """The page after a screen, with what somebody typed over what stood there."""
    said = {name.replace("_", ".", 1): value for name, value in typed.items()}
    do = "review" if heading(page) == "Variables" else "next"
    return desk.post(NEW, {**sent(page), "do": do, **said})


def test_four_screens_lead_from_a_purpose_to_the_terms(desk: DeskBrowser) -> None:
    (desk.desk.tables / "pilot.csv").write_text("id,a,b\np,1.5,2.5\nq,2.5,0.5")
    first = desk.get(NEW)
    assert heading(first) == "What it is for"
    silent = wrong(onward(desk, first, title="Wards", param_n_clusters="3"))
    assert "drops one dim" in silent["param.dimensions"], "an answer nobody gave"
    refused = onward(desk, first, param_dimensions="none", join_days="soon")
    assert heading(refused) == "What it is for"
    links = [each.attrib["href"] for each in tree(refused).iter("a")]
    fields = {each.attrib.get("id") for each in tree(refused).iter()}
    errors = [link.removeprefix("#") for link in links if link.startswith("#field")]
    assert set(errors) >= {"field-title", "field-param-n_clusters"}, "all at once"
    assert set(errors) <= fields
    plain = {"param_dimensions": "all_but_one", "join_days": ""}
    who = onward(desk, refused, title="Wards", param_n_clusters="3", **plain)
    assert heading(who) == "Who takes part"
    assert "alignment" not in texts(who), "rows are split: nothing is linked"
    linked = desk.post(NEW, {**sent(who), "split": "variables", "do": "split"})
    assert "Linking rows" in texts(linked)
    what = onward(desk, who)
    assert heading(what) == "Variables"
    listed = desk.post(NEW, {**sent(what), "table.1": "pilot.csv", "do": "variables"})
    assert list(variables(listed)) == ["a", "b"], "the column of ids was found"
    (desk.desk.tables / "other.csv").write_text("nr,c\np,1.5\nq,0.5")
    chosen = {**sent(listed), "table.1": "other.csv", "do": "variables"}
    assert sent(desk.post(NEW, chosen))["ids.1"] == ["nr"], "of the other table"
    typed = desk.post(NEW, {**sent(listed), "table.1": "", "do": "variables"})
    assert list(variables(typed)) == ["a", "b"], "rows stay, to be changed"
    review = onward(desk, listed)
    assert "Check your answers" in texts(review)
    [first, *_] = open_reviewed(desk, review)
    again = desk.get(f"{NEW}?from={first.session}")
    for _ in range(3):
        again = onward(desk, again)
    assert "Check your answers" in texts(again), "repeated without a word"
    back = desk.post(NEW, {**sent(review), "do": "to-1"})
    assert sent(back)["title"] == ["Wards"]


def test_variables_are_typed_as_rows_and_every_fault_is_said_at_once(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    cells = {
        "name": ["age", "ldl", "sex", ""],
        "role": ["cluster", "cluster", "describe", "cluster"],
        "type": ["integer", "number", "string", "number"],
        "unit": ["years", "mmol/l", "", ""],
        "minimum": ["", "", "", ""],
        "maximum": ["", "old", "", ""],
        "levels": ["", "", "f,m", ""],
        "title": [""] * 4,
        "decimals": [""] * 4,
    }
    rows = {f"variable.{name}.1": values for name, values in cells.items()}
    form = plan(missing="median")
    assert list(wrong(desk.post(NEW, {**form, **rows}))) == ["variable.role.1"]
    cells["maximum"][1] = ""
    page = desk.post(NEW, {**form, **rows})
    assert texts(page).count("the median needs a minimum and a maximum") == 4
    cells["minimum"][:2], cells["maximum"][:2] = ["0", "0.5"], ["120", "20"]
    review = desk.post(NEW, {**form, **rows})
    made = open_reviewed(desk, review)
    terms = coordinator.session(made[0].session).terms
    fields = {each.name: each for each in terms.dictionary[0].fields}
    assert (fields["age"].unit, fields["ldl"].bounds) == ("years", (0.5, 20.0))
    assert fields["sex"].levels == ("f", "m")
    assert terms.retention.session == 180 * 86_400


def test_the_terms_that_were_shown_are_those_that_are_opened(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    other = OwnIdentity(desk.desk.home / "other").create("Institute <b>")
    TrustedInstitutions(desk.desk.home).trust(other.card)
    told = {
        "purpose": HOSTILE,
        "param_n_clusters": "2..4",
        "choose": "later",
        "join_days": "0,5",
        "slot_expected": ["Institute <b>", "", ""],
        "minimum_rows": "7",
        "param_tol": "0.001",
    }
    review = desk.post(NEW, plan(**told))
    said = texts(review)
    assert "Institute <b>" in said
    assert "key not known" not in said
    assert "document.title" in said
    assert "<script>document" not in review.text
    assert "3 runs, one after the other" in said
    assert "llf.runs-single-out-rows" in said
    again = sent(review)
    assert coordinator.trusted_institutions.keys_by_name()
    page = desk.post(NEW, {**again, "do": "open"})
    made = invitations(page)
    assert [each.slot for each in made] == ["north", "south", "west"]
    opened = coordinator.session(made[0].session)
    assert digest(opened.terms_text) == again["digest"][0]
    terms = opened.terms
    assert terms.deadlines.recruiting == 43_200
    assert terms.guards.minimum_rows == 7
    assert terms.protocol.params == {"n_clusters": 4, "tol": 0.001}
    assert terms.identities.slots == {"north": other.key}
    sheet = desk.desk.own_home.terms_sheet(
        Offer(made[1], opened.terms_text, opened.terms)
    )
    assert sheet.places[0].expected is not None
    assert sheet.places[0].expected.name == "Institute <b>"
    assert (terms.evaluation.n_clusters, terms.evaluation.choose) == (
        (2, 3, 4),
        "later",
    )


def test_variables_can_be_described_before_anything_is_clustered(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    assert "Look before you cluster" in texts(desk.get(NEW))
    fields = [{"name": "age", "constraints": {"minimum": 0, "maximum": 120}}]
    (desk.desk.tables / "look.json").write_text(json.dumps({"fields": fields}))
    form = plan(protocol="describe", dictionary_1="look.json")
    del form["param.n_clusters"]
    [made, *_] = open_reviewed(desk, desk.post(NEW, form))
    terms = coordinator.session(made.session).terms
    assert terms.protocol.name == "describe"
    assert terms.release is not None
    assert terms.preparation[0].missing == "leave"


def test_sent_twice_it_is_one_session(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    form = {**sent(desk.post(NEW, plan())), "do": "open"}
    before = len(coordinator.sessions())
    page = desk.post(NEW, form)
    made = invitations(page)
    assert "\\u000a" not in page.text, "the letters have line breaks"
    again = desk.post(NEW, form)
    assert again.headers["location"].endswith(f"/sessions/{made[0].session}")
    accepted(desk, made[0])  # an invitation that was handed out stays valid
    assert len(coordinator.sessions()) == before + 1


def test_a_session_whose_opening_is_not_answered_is_opened_from_its_review(
    desk: DeskBrowser, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {**sent(desk.post(NEW, plan())), "do": "open"}
    before = len(coordinator.sessions())
    open_session = Coordinator.open_session

    def lose_answer(self: Coordinator, drawn_terms: DrawnTerms) -> CoordinatedSession:
        open_session(self, drawn_terms)
        raise Unavailable("The answer was lost.")

    monkeypatch.setattr(Coordinator, "open_session", lose_answer)
    page = texts(desk.post(NEW, form))
    assert "The answer was lost" in page
    assert "Nothing is opened yet" not in page, "a new form would open it twice"
    monkeypatch.undo()
    again = desk.post(NEW, form)
    assert again.headers["location"].endswith(f"/sessions/{form['drawn'][0]}")
    assert len(coordinator.sessions()) == before + 1


def test_more_places_are_no_parties_until_they_are_filled(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    more = desk.post(NEW, plan(do="places", screen="2"))
    form = sent(more)
    assert form["slot.name"] == ["north", "south", "west", "", "", ""]
    form["slot.title"] = ["North Clinic", "", "", "", "East Clinic", ""]
    review = desk.post(NEW, {**form, "do": "review"})
    made = open_reviewed(desk, review)
    layout = coordinator.session(made[0].session).terms.layout
    assert [slot.name for slot in layout.slots] == ["north", "south", "west", "r4c1"]
    assert layout.slots[-1].title == "East Clinic"


def test_a_repeat_says_how_gaps_and_sites_are_treated_and_can_change_it(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    fields = [
        {"name": name, "unit": "years", "constraints": {"minimum": 0, "maximum": 120}}
        for name in ("age", "bmi", "hb")
    ]
    (desk.desk.tables / "own.json").write_text(json.dumps({"fields": fields}))
    form = plan(dictionary_1="own.json", missing="mean", harmonise="age")
    review = desk.post(NEW, form)
    assert "years" in [each.text for each in tree(review).iter("td")]
    session = open_reviewed(desk, review)[0].session
    repeat = {**sent(desk.get(f"{NEW}?from={session}")), "do": "to-3"}
    variables = desk.post(NEW, repeat)
    assert f"as in session {session}" in texts(variables)
    for changed, missing, combat in (
        ({}, "mean", "combat"),
        ({"harmonise": ""}, "mean", None),
        ({"missing": "refuse"}, None, "combat"),
        ({"missing": "refuse", "harmonise": ""}, None, None),
    ):
        chosen = {**sent(variables), **changed, "do": "review"}
        [made, *_] = open_reviewed(desk, desk.post(NEW, chosen))
        terms = coordinator.session(made.session).terms
        plans = terms.preparation or ()
        assert [p.harmonise for p in plans] == [combat] * len(plans)
        rules = {treatment.missing for p in plans for treatment in p.fields}
        assert rules == {missing} - {None}
        assert bool(plans) == bool(missing or combat)


def test_a_repeat_keeps_the_covariates_of_all_column_groups(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    for number, names in enumerate((("age", "hb", "hba1c"), ("bmi", "ldl", "hdl")), 1):
        limits = {"minimum": 0, "maximum": 120}
        fields = [{"name": name, "constraints": limits} for name in names]
        path = desk.desk.tables / f"{number}.json"
        path.write_text(json.dumps({"fields": fields}))
    slots = ("a", "b", "c", "d", "e", "f")
    layout: dict[str, Any] = {
        "slot_name": slots,
        "slot_title": [""] * 6,
        "slot_expected": [""] * 6,
        "slot_row": ["1", "1", "2", "2", "3", "3"],
        "slot_column": ["1", "2"] * 3,
    }
    own = {"dictionary_1": "1.json", "dictionary_2": "2.json", "harmonise": "age,bmi"}
    dc = {"protocol": "dc", "param_dimensions": "all_but_one"}
    review = desk.post(NEW, plan(**dc, **layout, **own))
    for _ in range(2):
        session = open_reviewed(desk, review)[0].session
        plans = coordinator.session(session).terms.preparation or ()
        assert [plan.covariates for plan in plans] == [("age",), ("bmi",)]
        again = {**sent(desk.get(f"{NEW}?from={session}")), "do": "review"}
        review = desk.post(NEW, again)


def test_a_table_that_changed_meanwhile_changes_no_terms(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    table = desk.desk.tables / "pilot.csv"
    table.write_text("id,a,b\np,1.5,2.5\nq,2.5,0.5\nr,0.5,1.5")
    review = drafted(desk, {"b": {"role": "describe"}}, ids_1="id")
    assert "only described in profiles" in texts(review)
    table.write_text("id,a,c\np,1.5,2.5\nq,2.5,0.5\nr,0.5,1.5")
    made = open_reviewed(desk, review)
    terms = coordinator.session(made[0].session).terms
    said = {field.name: field.role for field in terms.dictionary[0].fields}
    assert said == {"a": "cluster", "b": "describe"}, "as they were read in the review"


def test_a_dictionary_that_changed_meanwhile_opens_nothing(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    file = desk.desk.tables / "own.json"
    file.write_text('{"fields": [{"name": "a"}, {"name": "b"}]}')
    review = desk.post(NEW, plan(dictionary_1="own.json"))
    file.write_text('{"fields": [{"name": "a"}]}')
    before = len(coordinator.sessions())
    page = desk.post(NEW, {**sent(review), "do": "open"})
    assert "a file has changed" in texts(page)
    assert len(coordinator.sessions()) == before


CELLS = (
    *("name", "role", "type", "unit", "minimum", "maximum", "levels", "title"),
    "decimals",
)


def drafted(
    desk: DeskBrowser, changed: dict[str, dict[str, str]], **said: Any
) -> httpx.Response:
    """Look at the terms with these cells of variables, once they are listed."""
    form = plan(**{"table_1": "pilot.csv", **said})
    page = desk.post(NEW, form)
    rows = variables(page)
    for name, cells in changed.items():
        rows[name].update(cells)
    typed = {
        f"variable.{cell}.1": [row[cell] for row in rows.values()] for cell in CELLS
    }
    return desk.post(NEW, {**form, **typed, "listed.1": sent(page)["listed.1"]})


def variables(page: httpx.Response) -> dict[str, dict[str, str]]:
    columns = [sent(page)[f"variable.{cell}.1"] for cell in CELLS]
    rows = zip(*columns, strict=True)
    return {row[0]: dict(zip(CELLS, row, strict=True)) for row in rows}


def test_words_of_rows_are_written_only_where_that_is_ticked(desk: DeskBrowser) -> None:
    rows = "\n".join(f"{n / 7},{'secret-word' if n % 2 else 'other'}" for n in range(9))
    (desk.desk.tables / "pilot.csv").write_text(f"a,ward\n{rows}")
    page = drafted(desk, {})
    assert "secret-word" not in page.text
    assert "in no dictionary: ward" in texts(page)
    number = texts(drafted(desk, {"a": {"role": "leave-out"}}, levels_1="yes"))
    assert "in no dictionary: a" in number
    assert "Columns of words" not in number
    ticked = drafted(desk, {}, levels_1="yes")
    assert "secret-word" in ticked.text
    listed = variables(desk.post(NEW, plan(table_1="pilot.csv", levels_1="yes")))
    assert listed["ward"]["levels"] == "other,secret-word"


def test_invitations_are_written_for_this_user_alone(desk: DeskBrowser) -> None:
    form = {**sent(desk.post(NEW, plan())), "do": "open"}
    blocked = desk.desk.tables / "file"
    blocked.write_text("")
    blocked.chmod(0o644)
    refused = desk.post(NEW, {**form, "folder": "file/letters"})
    assert "cannot be created or used" in wrong(refused)["folder"]
    refused = desk.post(NEW, {**form, "folder": "file"})
    assert "cannot be written to" in wrong(refused)["folder"]
    assert blocked.stat().st_mode & 0o777 == 0o644, "a file of others keeps its mode"
    page = desk.post(NEW, {**form, "folder": "letters"})
    assert "#coterie" not in page.text
    assert "only you can read them" in texts(page)
    letters = desk.desk.tables / "letters"
    assert {path.name for path in letters.iterdir()} == {
        f"{slot}.{ending}"
        for slot in ("north", "south", "west")
        for ending in ("invitation", "md")
    }
    assert all(path.stat().st_mode & 0o077 == 0 for path in letters.iterdir())
    Invitation.parse((letters / "north.invitation").read_text())


def test_a_folder_keeps_its_mode_and_the_invitations_of_other_sessions(
    desk: DeskBrowser, coordinator: Coordinator
) -> None:
    tables = desk.desk.tables
    tables.chmod(0o755)
    form = {**sent(desk.post(NEW, plan())), "do": "open", "folder": "."}
    desk.post(NEW, form)
    assert tables.stat().st_mode & 0o777 == 0o755
    first = (tables / "north.invitation").read_text()
    before = len(coordinator.sessions())
    other = {**sent(desk.post(NEW, plan())), "do": "open", "folder": "."}
    assert "perhaps of another session" in wrong(desk.post(NEW, other))["folder"]
    assert len(coordinator.sessions()) == before
    assert (tables / "north.invitation").read_text() == first
    again = f"/sessions/{Invitation.parse(first).session}/invitations"
    desk.post(again, {"slot": "north", "folder": "."})
    assert (tables / "north.invitation").read_text() != first, "of the same session"
    (tables / "notes").mkdir()
    (tables / "notes" / "north.md").write_text("mine")
    page = desk.post(again, {"slot": "north", "folder": "notes"})
    assert "already contains north.md" in texts(page)
    assert (tables / "notes" / "north.md").read_text() == "mine"

"""A mapping is kept with its session: said once, changed only where somebody agrees."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.analyst_process import House
from support.in_process import StartApi
from support.terminal import Terminal, accepting, answer_all, opened, read

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout
from party_sdk.application.home import Home
from party_sdk.party.party_session import PartySession
from party_sdk.supervisor.order_runner import DecisionPending, OrderAsker
from party_sdk.supervisor.orders import (
    Order,
    OrderedTable,
    PartyOrder,
    QuestionKind,
    place_order,
)
from party_sdk.tables.mapping import (
    ColumnMapping,
    TableMapping,
    describe_differences,
    dump_mapping,
    parse_mapping,
    read_mapping,
)

MAPPING = """version = 1
[columns.x]
from = "Wert"
factor = 2.0
missing = ["-77215"]
[columns.y]
from = "Zustand"
levels = {geheimwort = 1, anderes = 2}
[leave_out.values]
id = ["Summe"]
"""
OTHER = MAPPING.replace("anderes", "nichts").replace("factor = 2.0", "factor = 3.0")


@pytest.fixture
def table(online: Terminal) -> Path:
    kinds = ("geheimwort", "anderes")
    lines = [f"p{n:02},{n},{kinds[n % 2]}" for n in range(12)]
    return online.file("rows.csv", "\n".join(["id,Wert,Zustand", *lines, "Summe,66,-"]))


def mapping_file(terminal: Terminal, content: str = MAPPING) -> Path:
    return terminal.file("mapping.toml", content)


def run_of(terminal: Terminal, invitation: str, table: Path) -> tuple[object, ...]:
    labels = terminal.folder / "out.csv"
    data = ("--data", table, "--id-column", "id", "--labels", labels)
    accepted = accepting(terminal, invitation)
    return ("party", "run", invitation, *data, "--force", *accepted)


def save_mapping(online: Terminal, invitation: str, table: Path, mapping: Path) -> None:
    """Take part as far as to the mapping: too few rows stop the party."""
    run = (*run_of(online, invitation, table), "--mapping", mapping)
    online(*run, "--guard", "minimum_rows=99", expect=3)


def test_a_mapping_counts_until_the_report(online: Terminal, table: Path) -> None:
    session, invitation = opened(online, "--param", "n_clusters=3", "--seed", "1")
    given = mapping_file(online)
    save_mapping(online, invitation, table, given)
    given.unlink()
    home = online.folder / "home"
    folder = PartySession(home, session, "r1c1")
    assert folder.mappings.version == 1
    with folder.store.transaction() as database:
        database.execute("DELETE FROM ledger")  # as if it was killed before it noted it
    check = ("party", "check", invitation, "--data", table, "--id-column", "id")
    checked = online.json(*check)
    assert [each["name"] for each in checked["columns"]] == ["x", "y"]
    done = online(*run_of(online, invitation, table), "--json")
    assert json.loads(done.stdout)["columns"] == ["x", "y"]
    assert len(read(online.folder / "out.csv")) == 12
    assert folder.mappings.version == 1

    digest = folder.ledger.mapping_digest
    report = online.json("party", "report", session, "r1c1")
    assert report["mapping"] == digest
    assert len(digest) == 64
    assert [line["event"] for line in report["left"]][:2] == ["mapping", "joining"]
    page = online.folder / "report.html"
    online("party", "report", session, "r1c1", "--out", page)
    assert digest in page.read_text()
    drawn = ("party", "report", session, "r1c1", "--id-column", "id", "--data", table)
    assert online.json(*drawn)["points"]["n_rows"] == 12
    log = "\n".join(folder.ledger.verified_lines)
    for text in (json.dumps(report), page.read_text(), done.output, log):
        assert "geheimwort" not in text
        assert "-77215" not in text


def test_another_home_gives_another_digest(tmp_path: Path) -> None:
    mapping = parse_mapping(MAPPING.encode(), "mapping.toml")
    digests = {
        PartySession(tmp_path / home, "s", "r1c1").mappings.digest(mapping)
        for home in ("a", "b")
    }
    assert len(digests) == 2


CHANGES: dict[str, tuple[dict[str, object], str]] = {
    "source": ({"source": "Wert"}, "name in the table"),
    "levels": ({"levels": {"m": "male"}}, "levels"),
    "convert": ({"convert": "HbA1c, % to mmol/mol"}, "unit"),
    "factor": ({"factor": 2.0}, "unit"),
    "offset": ({"offset": 2.0}, "unit"),
    "missing": ({"missing": ("-77215",)}, "codes of missing values"),
    "decimal": ({"decimal": ","}, "decimal sign"),
    "thousands": ({"thousands": "."}, "thousands separator"),
    "dates": ({"dates": ("day-first",)}, "order of dates"),
    "limits": ({"limits": "half"}, "limits of detection"),
    "minus": ({"minus": "any"}, "minus signs"),
}


@pytest.mark.parametrize("name", ColumnMapping.model_fields)
def test_a_change_of_any_setting_of_a_column_is_described(name: str) -> None:
    values, part = CHANGES[name]
    before = TableMapping(columns={"x": ColumnMapping()})
    after = TableMapping(columns={"x": ColumnMapping.model_validate(values)})
    assert describe_differences(before, after) == [f"x: {part}"]
    assert describe_differences(after, after) == []


def test_a_mapping_that_is_only_written_differently_is_not_asked_about(
    tmp_path: Path,
) -> None:
    stored = PartySession(tmp_path / "home", "s", "r1c1").mappings
    first = TableMapping(columns={"x": ColumnMapping(missing=("-7", "-8"))})
    again = TableMapping(columns={"x": ColumnMapping(missing=("-8", "-7"))})
    stored.current_mapping = lambda: first  # type: ignore[method-assign]
    assert stored.choose_mapping(again, lambda _: False) == first


def test_a_changed_mapping_is_told_and_asked(
    online: Terminal, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, invitation = opened(online, "--param", "n_clusters=3", "--seed", "1")
    save_mapping(online, invitation, table, mapping_file(online))
    folder = PartySession(online.folder / "home", session, "r1c1")
    other = mapping_file(online, OTHER)
    run = (*run_of(online, invitation, table), "--mapping", other)
    stopped = online(*run, expect=3)
    for part in ("x: unit", "y: levels", "--new-mapping"):
        assert part in stopped.stderr
    assert "nichts" not in stopped.stderr
    assert folder.mappings.version == 1
    assert not folder.has_joined

    with answer_all(monkeypatch, yes=False) as asked:
        online(*run, expect=3)
    assert asked == ["Read the table with the new mapping?"]
    assert folder.mappings.version == 1

    broken = mapping_file(online, OTHER.replace("Wert", "Wort"))
    failed = online(*run_of(online, invitation, table), "--mapping", broken,
                    "--new-mapping", expect=5)  # fmt: skip
    assert "'Wort'" in failed.stderr
    assert folder.mappings.version == 1, "one that reads no table is not kept"

    kept = mapping_file(online, MAPPING.replace("2.0", "2.5"))
    online(*run_of(online, invitation, table), "--mapping", kept, "--new-mapping")
    assert folder.mappings.version == 2
    events = [entry["event"] for entry in folder.ledger.verified_entries()]
    assert events[:3] == ["mapping", "mapping", "joining"]
    last = folder.mappings.current_mapping()
    assert last.columns["x"].unit == (2.5, 0.0)

    # once it has joined the data are the same, or it does not continue
    again = mapping_file(online, MAPPING)
    resume = ("party", "run", session, "r1c1", *run_of(online, invitation, table)[3:])
    refused = online(*resume, "--mapping", again, "--new-mapping", expect=3)
    assert "other data" in refused.stderr
    assert folder.mappings.version == 2
    online(*resume)


def mapped_order(invitation: str, table: Path, given: Path) -> Order:
    mapping = dump_mapping(read_mapping(given)).decode()
    return Order(
        invitation=invitation, table=OrderedTable(path=str(table), mapping=mapping)
    )


def test_an_order_reads_its_table_by_its_mapping(online: Terminal, table: Path) -> None:
    session, invitation = opened(online, "--param", "n_clusters=3", "--seed", "1")
    given = mapping_file(online)
    home = online.folder / "home"
    place_order(home, mapped_order(invitation, table, given))
    files = PartyOrder(home, session, "r1c1")
    ordered = files.order().table
    named_table = ordered.to_spec()
    assert named_table.options.mapping.columns["x"].source == "Wert"
    assert "geheimwort" not in repr(ordered)

    other = parse_mapping(OTHER.encode(), "mapping.toml")
    files.stored.mappings.add(other)
    files.take()
    here = Home(path=home, asker=OrderAsker(files))
    with pytest.raises(DecisionPending):
        here.map_spec(files.stored, named_table)
    asked = files.question()
    assert asked.kind is QuestionKind.MAPPING
    assert "x: unit; y: levels" in asked.sentence
    assert "geheimwort" not in asked.model_dump_json()
    PartyOrder(home, session, "r1c1").answer(asked.id, yes=True)
    files.take()
    chosen = here.map_spec(files.stored, named_table).options.mapping
    assert chosen == named_table.options.mapping
    chosen = here.map_spec(files.stored, named_table.with_mapping(None)).options.mapping
    assert chosen == other


def test_python_keeps_a_mapping_for_new_rows_too(
    start_api: StartApi, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[50, 1], [70, 9], [20, 5]])
    X = centers[np.arange(60) % 3] + rng.normal(size=(60, 2))
    frame = pd.DataFrame(X / [2.0, 1.0], columns=["Wert", "y"])
    frame.insert(0, "id", [f"p{n}" for n in range(60)])
    said = {"columns": {"x": {"from": "Wert", "factor": 2.0}}}
    mapping = TableMapping.model_validate(said)
    with start_api(driven=True) as api:
        house = House(api, tmp_path)
        opened = house.open(
            "w",
            DataCollaboration(n_clusters=3, predictor=True, dimensions="all_but_one"),
            Layout.lattice(1),
        )
        [party] = house.parties(opened).values()
        with party:
            result = party.run(frame, id_column="id", mapping=mapping)
            assert party.stored.mappings.current_mapping() == mapping
            again = party.run(frame, id_column="id")
            with pytest.raises(GuardRefused, match="x: name in the table, unit"):
                party.run(frame, id_column="id", mapping=TableMapping())
    assert result.columns == ("x", "y")
    np.testing.assert_array_equal(again.labels, result.labels)
    found = result.predict(frame, id_column="id").labels
    np.testing.assert_array_equal(found, result.labels)
    labelled = result.to_frame(frame)
    assert list(labelled.columns) == ["id", "Wert", "y", "label"]
    right = frame.rename(columns={"Wert": "x"}).assign(x=frame["Wert"] * 2)
    found = result.predict(right, id_column="id", mapping=TableMapping()).labels
    np.testing.assert_array_equal(found, result.labels)

"""Columns of match keys are read at home: empty cells, mappings, columns clustered too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.terminal import Terminal

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.shared_stages.alignment.match_keys import compute_key_values
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.schema import Schema
from party_sdk.coordinator.option_parsing import add_match_keys
from party_sdk.tables import Table, open_table
from party_sdk.tables.linkage import describe_unlinked, find_unlinked_rows
from party_sdk.tables.mapping import TableMapping

COLUMNS = ("name", "birth")
TEXT = (
    "name,birth,age,crp\nada,1970-01-31,50,1.5\n,1971-01-31,51,2.5\nbob,k.A.,52,3.5\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = tmp_path / "t.csv"
    table.write_text(TEXT)
    return table


def opened(path: Path, **more: object) -> Table:
    found = open_table(path, match_key_columns=COLUMNS, **more)  # type: ignore[arg-type]
    assert isinstance(found, Table)
    return found


def ids_of(table: Table) -> list[list[str]]:
    return [json.loads(name) for name in table.ids or ()]


def test_rows_may_lack_cells_of_match_keys(path: Path) -> None:
    with pytest.raises(InvalidData, match="no id"):
        open_table(path, id_column=COLUMNS)
    table = opened(path)
    assert table.naming == COLUMNS
    assert table.columns == ("age", "crp")
    assert ids_of(table) == [["ada", "1970-01-31"], ["", "1971-01-31"], ["bob", "k.A."]]


def test_codes_of_no_value_are_no_value_of_a_key(path: Path) -> None:
    table = opened(path, dialect=["missing=k.A."])
    assert ids_of(table)[2] == ["bob", ""]


def test_a_column_of_a_key_can_be_clustered_too(path: Path) -> None:
    table = open_table(path, match_key_columns=("name", "age"), columns=["age", "crp"])
    assert isinstance(table, Table)
    assert ids_of(table)[0] == ["ada", "50"]
    assert matrix(table).tolist() == [[50, 1.5], [51, 2.5], [52, 3.5]]


def test_own_ids_beside_match_keys_are_not_clustered(path: Path) -> None:
    table = opened(path, id_column="age")
    assert table.columns == ("crp",)
    assert table.naming == COLUMNS


def test_a_mapping_renames_and_mends_columns_of_keys(path: Path) -> None:
    path.write_text(TEXT.replace("name", "Name").replace("birth", "Geboren"))
    mapping = TableMapping.model_validate(
        {
            "columns": {
                "name": {"from": "Name", "levels": {"bob": "robert"}},
                "birth": {"from": "Geboren", "missing": ["k.A."]},
            }
        }
    )
    schema = Schema.model_validate({"fields": [{"name": "age"}, {"name": "crp"}]})
    table = opened(path, mapping=mapping, schema=schema)
    assert ids_of(table)[2] == ["robert", ""]


def test_a_table_without_a_column_of_a_key_is_refused(path: Path) -> None:
    path.write_text(TEXT.replace("birth", "born"))
    with pytest.raises(InvalidData, match="no column 'birth'"):
        opened(path)


def test_unlinked_rows_are_told_by_line_and_lacking_keys(path: Path) -> None:
    table, normalisation = opened(path), Alignment().normalisation
    assert table.ids is not None
    keys = ("name + birth | date", "birth")
    values = compute_key_values(table.ids, keys, normalisation)
    found = find_unlinked_rows(values, table, np.array([0, -1, -1]))
    assert found == [(3, (1,), "line"), (4, (1, 2), "line")], "k.A. is no date"
    told = describe_unlinked(found)
    assert told[0] == "unlinked rows: 2, of which 0 have a value of every key"
    assert told[1:3] == [
        "  line 4: no value, or a shared one, of key 1, 2",
        "  line 3: no value, or a shared one, of key 1",
    ]


def test_keys_are_given_one_by_one_or_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("name + birth\n\n  birth \n")
    said = add_match_keys({"n_clusters": 2}, [f"@{path}", "name"])
    assert said["alignment"] == {
        "method": "ecdh",
        "match_keys": ["name + birth", "birth", "name"],
    }
    assert add_match_keys({"n_clusters": 2}, []) == {"n_clusters": 2}
    with pytest.raises(InvalidParameters, match="no file of keys"):
        add_match_keys({}, ["@absent"])


def test_a_command_for_a_table_that_names_nobody_says_so(
    terminal: Terminal, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    refused = terminal("table", path, "--link", expect=5)
    assert "No columns identify people" in refused.output

"""The client passes all vectors and recorded sessions, and refuses what it must."""

import json

import numpy as np
from scipy.special import ndtri

from benchmarks.vectors.__main__ import check
from benchmarks.vectors.checker import ProgramProcess
from clustering_protocols.contract.row_history import RowHistory
from tests.system.interop.client_process import CLIENT, run_client

COMMAND = ["npm", "--prefix", str(CLIENT), "run", "--silent", "conformance"]


def test_all_vectors_and_sessions() -> None:
    with ProgramProcess(COMMAND) as program:
        assert program.ask("dance", {}) == {"unknown": "dance"}
    found = check(COMMAND)
    assert [case.sentence for case in found if case.wrong] == []
    assert [case.sentence for case in found if case.left_out] == []
    assert len(found) > 200


def test_normal_numbers_are_those_of_scipy_in_both_tails() -> None:
    chances = np.concatenate([10.0 ** -np.arange(1, 16), np.linspace(0.01, 0.99, 99)])
    script = (
        "import { normalQuantile } from './src/numerics/normal-quantile.ts';"
        f"console.log(JSON.stringify({chances.tolist()}.map(normalQuantile)));"
    )
    found = json.loads(run_client("--input-type=module", "--eval", script))
    np.testing.assert_allclose(found, ndtri(chances), rtol=1e-13, atol=1e-15)


def test_as_many_own_rows_follow_from_sums_as_in_python() -> None:
    drawn = np.random.default_rng(0)
    tables = [
        drawn.integers(0, 3, (n_sums, n_rows)).tolist()
        for n_sums in (1, 4, 9, 14)
        for n_rows in (5, 12, 30)
    ]
    script = (
        "import { countFollowing, extend } from './src/protocols/llf/rows/audit.ts';"
        "const of = (table) => ({ sums: 0, ofRow: table[0].map(() => 0), labels: [] });"
        f"const found = {tables}.map((table) => countFollowing("
        "table.reduce((history, labels) => extend(history, labels), of(table)), 0));"
        "console.log(JSON.stringify(found));"
    )
    expected = []
    for table in tables:
        history = RowHistory.empty(len(table[0]))
        for labels in table:
            history = history.after_partition(np.array(labels))
        expected.append(history.count_derivable_rows())
    assert json.loads(run_client("--input-type=module", "--eval", script)) == expected
    assert 0 < sum(map(bool, expected)) < len(expected)

"""Profiles of real parties: over HTTP, in files, by commands, once of like rows."""

from typing import Literal

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_iris
from support.analyst_process import House

from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.schema import Field, Schema, numeric_schema
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Layout
from coterie_pages.formatting import format_test
from coterie_pages.pages import render_html
from party_sdk.admission.table_files import TableSpec
from party_sdk.cli.terminal.result_lines import outcome_lines, profile_lines
from party_sdk.reports.run_reports import run_report
from party_sdk.reports.session_reports import audited_report
from party_sdk.tables import ReadOptions

NAMES_OF_SIX = ["a", "b", "c", "d", "cost", "died"]


@pytest.mark.threat(108)
@pytest.mark.parametrize(
    ("readers", "params"),
    [
        ("everybody", LosslessFederated(n_clusters=3)),
        ("members", DataCollaboration(n_clusters=3, dimensions="all_but_one")),
    ],
)
@pytest.mark.quick(1)
def test_parties_and_coordinator_read_profiles_over_http(
    house: House, readers: Literal["everybody", "members"], params: Params
) -> None:
    X = load_iris().data
    session = house.open(
        f"profiles-{readers}",
        params,
        Layout.lattice(3),
        dictionary=[numeric_schema(("a", "b", "c", "d"), X.min(axis=0), X.max(axis=0))],
        release=Release(profiles=readers),
    )
    tables = [pd.DataFrame(X[i::3], columns=list("abcd")) for i in range(3)]
    results = list(house.run(session, tables).values())
    for slot, table_ in zip(house.last, tables, strict=True):
        member = house.last[slot]
        data = TableSpec(path=table_, options=ReadOptions()).open(member.slot_fields)
        found = run_report(member, house.home_of(slot), data=data)
        pooled, own, *rest = found.profiles
        assert (pooled.own, own.own, rest) == (False, True, [])
        counts = np.bincount(member.result().labels, minlength=3)
        kept = [cluster for cluster in range(3) if counts[cluster] >= 10]
        assert own.clusters == tuple(kept)
        for field in own.fields:
            column = table_[field.name].to_numpy()
            means = [column[member.result().labels == c].mean() for c in kept]
            np.testing.assert_allclose(field.mean[: len(kept)], means, rtol=1e-6)
        assert "below, of your own rows" in render_html(found)
        without = run_report(member, house.home_of(slot))
        assert len(without.profiles) == 1, "no table, nothing beside"
    told = session.profiles()
    assert len(told) == (readers == "everybody")
    assert all(profile.rounded for profile in told)
    lines = list(profile_lines(told or results[0].profiles))
    assert "columns 1, over all parties" in lines[0]


def test_described_variables_are_in_reports_and_terminals(house: House) -> None:
    """What the coordinator reads is rounded, what parties read is not."""
    X = load_iris().data
    rng = np.random.default_rng(2)
    outcome = np.column_stack([rng.gamma(2.0, 900.0, 150), rng.random(150) < 0.3])
    fields = numeric_schema(("a", "b", "c", "d"), X.min(axis=0), X.max(axis=0)).fields
    described = (
        Field(name="cost", role="describe", unit="EUR"),
        Field(name="died", type="boolean", role="describe"),
    )
    session = house.open(
        "described",
        LosslessFederated(n_clusters=3),
        Layout.lattice(3),
        dictionary=[Schema(fields=(*fields, *described))],
        release=Release(profiles="everybody"),
    )
    whole = np.hstack([X, outcome])
    tables = [pd.DataFrame(whole[i::3], columns=NAMES_OF_SIX) for i in range(3)]
    results = house.run(session, tables)
    rows = np.concatenate(tables)
    labels = np.concatenate([result.labels for result in results.values()])
    lines = [rows[labels == label, 4] for label in range(3)]
    slot = next(iter(results))
    told = run_report(house.last[slot], house.home_of(slot))
    (table_,) = told.outcomes
    assert {field.name for field in table_.fields} == {"cost", "died"}
    cost = next(field for field in table_.fields if field.name == "cost")
    np.testing.assert_allclose(cost.p, stats.f_oneway(*lines).pvalue, rtol=1e-9)
    assert "described variables of columns 1" in "\n".join(outcome_lines(told.outcomes))
    html = render_html(told)
    assert "Clustered variables have no test" in html
    assert format_test(cost).replace("<", "&lt;") in html
    opened = house.coordinator.session(session.id)
    theirs, _ = audited_report(house.coordinator, opened, opened.status())
    assert "rounded values" in theirs.outcomes[0].notes[-1]
    assert "rounded values" in render_html(theirs)

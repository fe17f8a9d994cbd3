"""New rows of a kept session: labels, distances, ranges, against scikit-learn."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler
from support.analyst_process import House
from support.in_process import Api

from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    InvalidParameters,
    NotReady,
)
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout
from coterie import Party, Result
from party_sdk.admission.table_files import TableSpec
from party_sdk.application.home import Home
from party_sdk.cli.party.results import new_rows_lines
from party_sdk.cli.terminal import asker as confirmation
from party_sdk.party.party_session import Document
from party_sdk.results.label_files import write_labels
from party_sdk.results.new_rows import NewRows
from party_sdk.tables import ReadOptions

LAYOUT = Layout.lattice(3)
NAMES = ["age", "crp", "weight"]
SCHEMA = Schema(
    fields=(
        Field(name="age", unit="years"),
        Field(name="crp"),
        Field(name="weight", unit="kg"),
        Field(name="ward", type="string", categories=("surgery", "medicine")),
    )
)


def patients(seed: int, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    X = np.column_stack(
        [
            rng.normal(30 + 20 * group, 4),
            rng.normal(60 - 25 * group, 5),
            rng.normal(75, 9, n),
        ]
    )
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "patient", [f"{seed}-{row}" for row in range(n)])
    return frame


FRAMES = [patients(1), patients(2), patients(3, 70)]
POOLED = np.concatenate([frame[NAMES].to_numpy() for frame in FRAMES])
SCALER = StandardScaler().fit(POOLED)


def with_wards(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows with a level, and here and there no weight."""
    more = frame.assign(ward=np.where(frame["crp"] > 35, "surgery", "medicine"))
    more.loc[::9, "weight"] = None
    return more


def read_sheet(path: Path) -> pd.DataFrame:
    return pd.read_excel(path, engine="calamine")


@pytest.fixture(scope="module")
def house(driven_api: Api, tmp_path_factory: pytest.TempPathFactory) -> House:
    return House(driven_api, tmp_path_factory.mktemp("house"))


class Kept:
    """A session that has ended, in homes of its own, with what its parties keep."""

    def __init__(self, house: House, name: str, params: Any, tables: Any, **more: Any):
        house = House(house.api, house.home / name)
        session = house.open(name, params, LAYOUT, **more)
        self.results: dict[str, Result] = house.run(
            session, tables, id_column="patient"
        )
        self.parties: dict[str, Party] = house.last
        self.name, self.house = name, house

    def home(self, slot: str = "r1c1") -> Home:
        return Home(path=self.house.home_of(slot))

    def label(self, table: Any, slot: str = "r1c1", **how: Any) -> NewRows:
        rows = TableSpec(path=table, options=ReadOptions(id_column="patient"))
        return self.home(slot).label(self.name, slot, rows, **how)

    def summary(self, table: Any, **how: Any) -> Any:
        return self.label(table, **how).summary


@pytest.fixture(scope="module")
def lossless(house: House) -> Kept:
    return Kept(house, "lossless", LosslessFederated(n_clusters=3), FRAMES)


@pytest.fixture(scope="module")
def prepared(house: House) -> Kept:
    params = LosslessFederated(n_clusters=3)
    terms = {"dictionary": [SCHEMA], "preparation": [Preparation(missing="drop")]}
    return Kept(house, "prepared", params, [*map(with_wards, FRAMES)], **terms)


@pytest.fixture(scope="module")
def described(house: House) -> Kept:
    """A session whose dictionary has an outcome to describe and a described covariate."""
    clustered = [
        Field(name=name, constraints=Constraints(minimum=-100, maximum=300))
        for name in NAMES
    ]
    smoker = Field(name="smoker", type="boolean", role="describe")
    schema = Schema(
        fields=(smoker, *clustered, Field(name="stay", role="describe")),
    )
    prepared = Preparation(harmonise="combat", covariates=("smoker",))
    terms = {"dictionary": [schema], "preparation": [prepared]}
    params = LosslessFederated(n_clusters=3)
    return Kept(house, "described", params, [*map(with_stay, FRAMES)], **terms)


def with_stay(frame: pd.DataFrame) -> pd.DataFrame:
    smoker = np.arange(len(frame)) % 3 == 0
    return frame.assign(smoker=smoker, stay=frame["age"] / 10)


def by_transform(labels: list[np.ndarray[Any, Any]], new: Any) -> Any:
    """Distances by scikit-learn, of k-means that has come to these labels."""
    Z, all_ = SCALER.transform(POOLED), np.concatenate(labels)
    means = np.array([Z[all_ == k].mean(axis=0) for k in range(3)])
    fitted = KMeans(3, init=means, n_init=1, tol=0).fit(Z)
    assert_array_equal(fitted.labels_, all_)
    return fitted.transform(SCALER.transform(new[NAMES].to_numpy()))


def test_distances_are_those_of_scikit_learn(lossless: Kept) -> None:
    new = patients(9, 25)
    expected = by_transform([r.labels for r in lossless.results.values()], new)
    for result in (*lossless.results.values(), lossless.parties["r2c1"].result()):
        found = result.predict(new, id_column="patient")
        assert found.centre_distances is not None
        assert found.distances is not None
        assert_allclose(found.centre_distances, expected, atol=1e-9, rtol=1e-9)
        assert_allclose(found.distances, expected.min(axis=1), atol=1e-9, rtol=1e-9)
        assert_array_equal(found.labels, expected.argmin(axis=1))


def test_columns_are_found_by_their_names_without_a_dictionary(lossless: Kept) -> None:
    new = patients(9, 25)
    expected = lossless.label(new).labels
    turned = new[["weight", "patient", "crp", "age"]].assign(note="none")[::-1]
    assert_array_equal(lossless.label(turned).labels, expected[::-1])
    with pytest.raises(InvalidData, match="'crp'"):
        lossless.label(turned.drop(columns="crp"))
    identity = lossless.parties["r1c1"].stored.load_identity()
    assert identity.columns == tuple(NAMES)
    assert "crp" not in identity.terms, "names of columns stay at home"


def test_new_rows_need_covariates_but_no_described_variable(described: Kept) -> None:
    table = with_stay(FRAMES[0])
    labels = described.results["r1c1"].labels
    for new in (table, table.drop(columns="stay")):
        assert_array_equal(described.label(new).labels, labels)
        found = described.parties["r1c1"].predict(new, id_column="patient")
        assert_array_equal(found.labels, labels)
    with pytest.raises(InvalidData, match="'smoker'"):
        described.label(table.drop(columns="smoker"))


def test_the_table_of_the_session_lies_where_it_lay(lossless: Kept) -> None:
    for (slot, result), frame in zip(lossless.results.items(), FRAMES, strict=True):
        found = lossless.parties[slot].predict(frame, id_column="patient")
        assert_array_equal(found.labels, result.labels)
        assert not found.outside.any()
        summary = found.summary
        assert summary.outside == 0.0
        assert {each.shift for each in summary.variables} == {0.0}
        assert [each.then for each in summary.clusters] == [
            each.now for each in summary.clusters
        ]
        assert [e.n_rows for e in summary.clusters] == result.own_sizes.tolist()


def test_outside_is_the_share_of_columns_beyond_own_rows(lossless: Kept) -> None:
    new, own = patients(5, 40), FRAMES[0][NAMES]
    new.loc[3, NAMES] = [150.0, 400.0, 75.0]
    found = lossless.label(new)
    X = new[NAMES]
    expected = ((own.min() > X) | (own.max() < X)).to_numpy()
    assert_allclose(found.outside, expected.mean(axis=1))
    assert found.outside[3] == pytest.approx(2 / 3)
    summary = found.summary
    assert summary.outside == expected.any(axis=1).mean()
    assert summary.by_chance == pytest.approx(2 * 3 / 61)
    by_name = {each.name: each.outside for each in summary.variables}
    assert by_name == dict(zip(NAMES, expected.mean(axis=0), strict=True))


def test_a_shift_is_said_in_standard_deviations(prepared: Kept) -> None:
    own = with_wards(FRAMES[0]).dropna()
    new = with_wards(patients(6, 80))
    new["weight"] += 12
    summary = prepared.summary(new)
    first = summary.variables[0]
    assert first.name == "weight"
    moved = new.dropna()["weight"].mean() - own["weight"].mean()
    assert first.shift == pytest.approx(moved / own["weight"].std(ddof=0))
    assert "ward=surgery" in {variable.name for variable in summary.variables}
    text = summary.model_dump_json()
    assert not [name for name in new["patient"] if f'"{name}"' in text]


def test_rows_that_lack_a_value_stay_empty(prepared: Kept, tmp_path: Path) -> None:
    new = with_wards(patients(7, 30))
    lacking = new["weight"].isna().to_numpy()
    found = prepared.label(new)
    assert ((found.labels == -1) == lacking).all()
    assert (found.summary.n_rows, found.summary.n_labelled) == (30, 30 - lacking.sum())
    lines = "\n".join(new_rows_lines(found.summary))
    assert f"because a value is missing: {lacking.sum()} rows" in lines
    for ending, read in ((".csv", pd.read_csv), (".xlsx", read_sheet)):
        path = found.save(tmp_path / f"labels{ending}")
        content = tmp_path / f"content{ending}"
        content.write_bytes(found.encode(ending))
        for written in (path, content):
            table = read(written)
            assert " ".join(table) == "patient label distance uncertainty outside"
            assert (table["distance"].isna() == lacking).all()
            assert (table["outside"].isna() == lacking).all()
            assert list(table["patient"]) == list(new["patient"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda frame: frame.assign(ward="heart"), "is not a level of the dictionary"),
        (lambda frame: frame.iloc[:0], "no rows"),
        (lambda frame: frame.drop(columns="crp"), "crp"),
        (lambda frame: frame.assign(weight=None), "No row has all the values"),
    ],
    ids=["a new level", "no row", "a column less", "no value"],
)
def test_what_cannot_be_labelled_is_refused(
    prepared: Kept, change: Any, why: str
) -> None:
    with pytest.raises(InvalidData, match=why):
        prepared.label(change(with_wards(patients(8, 12))))


def test_another_unit_is_asked_about_before_anything_is_said(lossless: Kept) -> None:
    grams = patients(12, 30).assign(weight=lambda frame: 1000 * frame["weight"])
    with pytest.raises(GuardRefused, match="'weight': your mean is 7") as refused:
        lossless.label(grams)
    assert "--choice allow_other_units=true" in refused.value.remedy
    for how in (
        {"agree": lambda doubt: "'weight'" in doubt},
        {"choices": {"allow_other_units": True}},
    ):
        summary = lossless.summary(grams, **how)
        assert summary.variables[0].name == "weight"


def test_nothing_leaves_and_nothing_changes_at_home(prepared: Kept) -> None:
    home = prepared.house.home_of("r1c1")

    def digests() -> dict[Path, str]:
        files = (path for path in home.rglob("*") if path.is_file())
        return {path: sha256(path.read_bytes()).hexdigest() for path in files}

    before = digests()
    prepared.label(with_wards(patients(13, 30)))
    assert digests() == before
    sent = prepared.parties["r1c1"].stored.ledger.verified_lines
    assert "own-moments" not in "".join(sent)


def test_a_home_without_a_summary_says_so(house: House) -> None:
    kept = Kept(house, "earlier", LosslessFederated(n_clusters=3), FRAMES)
    kept.parties["r1c1"].stored.save_document(Document.MOMENTS, None)
    with pytest.raises(NotReady, match="no summary"):
        kept.label(patients(14, 30))
    kept.home().forget(kept.name, "r1c1")
    with pytest.raises(NotReady, match="forgotten"):
        kept.label(patients(14, 30))


def test_a_sheet_holds_no_more_rows_than_excel_reads(tmp_path: Path) -> None:
    path = tmp_path / "labels.xlsx"
    with pytest.raises(InvalidParameters, match="holds 1,048,575 rows"):
        write_labels(path, np.zeros(2**20, dtype=np.int64), None, (), {})
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_killed_process_leaves_the_file_before(
    lossless: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "labels.csv"
    before = lossless.label(patients(16, 20)).save(path).read_bytes()
    found = lossless.label(patients(17, 25))

    def write(target: Path, content: bytes) -> None:
        with target.open("wb") as file:
            file.write(content[:13])
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        child = os.fork()
        if not child:
            try:
                found.save(path)
            finally:
                os._exit(1)  # a child that is not killed runs no more tests
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert path.read_bytes() == before
    assert len(pd.read_csv(found.save(path))) == 25
    assert [each.name for each in tmp_path.iterdir()] == ["labels.csv"]


# A column in another unit: who brings it is asked alone


UNITS_RNG = np.random.default_rng(3)
SAID = "HbA1c in % here, in mmol/mol there"


def hospital(n: int, *, percent: bool = False) -> MatrixSource:
    group = UNITS_RNG.integers(2, size=n)
    hba1c = UNITS_RNG.normal(50 + 25 * group, 6)
    rows = np.column_stack([UNITS_RNG.normal(45 + 20 * group, 5), hba1c])
    if percent:
        rows[:, 1] = (hba1c + 23.5) / 10.929
    return MatrixSource(rows, ["age", "hba1c"])


HOSPITALS = [hospital(60), hospital(50), hospital(40, percent=True)]


def test_only_rows_in_other_units_need_confirmation(house: House) -> None:
    session = house.open("units", LosslessFederated(n_clusters=2), LAYOUT)
    invitations = session.invite()
    asked: dict[str, list[str]] = {slot: [] for slot in invitations}

    def joined(slot: str) -> Party:
        def approve(found: Inspection) -> bool:
            asked[slot].append(found.asks)
            return True

        asker = Mock(is_present=True, approve=approve)
        return house.accept(session, invitations, slot, asker=asker)

    parties = {slot: joined(slot) for slot in invitations}
    with ThreadPoolExecutor(3) as pool:
        runs = [
            pool.submit(party.run, rows)
            for party, rows in zip(parties.values(), HOSPITALS, strict=True)
        ]
        results = [each.result() for each in runs]
    assert [len(asked[slot]) for slot in invitations] == [0, 0, 1]
    [said] = asked["r3c1"]
    assert SAID in said
    ledger = "".join(parties["r3c1"].stored.ledger.verified_lines)
    assert "hba1c" not in ledger.casefold()
    # a new quarter, of a party whose column was right, in the other unit
    quarter = hospital(25, percent=True)
    with pytest.raises(GuardRefused, match="that of the session's rows"):
        results[0].predict(quarter)
    agreed = results[0].predict(quarter, agree=lambda doubt: SAID[:10] in doubt)
    assert len(agreed.labels) == 25


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_asks_before_it_labels_new_rows(
    monkeypatch: pytest.MonkeyPatch, *, answer: bool
) -> None:
    monkeypatch.setattr("click.confirm", lambda *_, **__: answer)
    assert not confirmation.confirm_units("nobody is there")
    there: Any = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(confirmation, "sys", there)
    assert confirmation.confirm_units("somebody is there") is answer

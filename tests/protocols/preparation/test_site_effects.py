"""Site effects are removed as by ComBat on pooled rows, and stay at their site."""

from typing import Any

import numpy as np
import pytest
from support.attacks import looks_like_noise
from support.drawn_terms import drawn
from support.tables import cut

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.engine import packets
from clustering_protocols.engine.party import visible_rows
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.site_effects import (
    NAME,
    SiteEffects,
    shrink_site_effects,
)
from clustering_protocols.shared_stages.sums import AddUp, SumTotals
from clustering_protocols.terms.preparation import (
    Preparation,
    Treatment,
    build_column_plans,
)
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout
from party_sdk.coordinator.option_parsing import read_preparation

WIDTH, SIZES = 110, (60, 35, 90)
LAYOUT, LLF = Layout.lattice(3), LosslessFederated(n_clusters=2)
MEASURES = tuple(f"area{number}" for number in range(WIDTH))


NEUROCOMBAT = np.array(
    [
        [-0.386627507, 10.633354317],
        [0.257841151, 12.317873263],
        [-1.576625585, 10.599400818],
    ]
)
"""What neuroCombat 0.2.12 makes of each 74th row and 80th measure of the study.

It is not a dependency: it comes as source alone, and casts covariates to 32 bits.
"""


def field(name: str, low: float, high: float, **more: Any) -> Field:
    return Field(name=name, constraints=Constraints(minimum=low, maximum=high), **more)


SCHEMA = Schema(
    fields=(
        field("age", 0, 120, role="describe"),
        *(field(name, -50, 50) for name in MEASURES),
        Field(name="ward", type="string", categories=("a", "b", "c"), role="describe"),
        Field(name="smokes", type="boolean"),
    )
)
COMBAT = Preparation(harmonise="combat", covariates=("age", "ward", "smokes"))


def study(seed: int = 0) -> tuple[FloatArray, IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    site = np.repeat(range(3), SIZES)
    n = len(site)
    group, age = rng.integers(0, 2, n), rng.normal(50, 10, n).clip(0, 120)
    ward, smokes = rng.integers(0, 3, n), rng.integers(0, 2, n)
    effect = np.outer(age, np.linspace(-0.05, 0.05, WIDTH)) + 0.3 * smokes[:, None]
    noise = rng.normal(size=(n, WIDTH)) * (0.6 + 0.3 * site[:, None])
    shift = rng.normal(0, 3, (3, WIDTH))[site]
    Y = effect + 2.5 * group[:, None] + shift + noise
    return np.column_stack([age, Y, ward, smokes]), site, group


def session(
    X: FloatArray, preparation: Preparation = COMBAT, schema: Schema = SCHEMA
) -> simulation.Session:
    data = cut(X, LAYOUT, SIZES, schema.names)
    agreed = {"dictionary": [schema], "preparation": [preparation]}
    return simulation.Session(LLF, LAYOUT, data, seed=1, **agreed)


X, SITE, GROUP = study()


@pytest.fixture(scope="module")
def ended() -> simulation.Session:
    ran = session(X)
    ran.run_to_end()
    return ran


def clustered(ran: simulation.Session) -> FloatArray:
    homes = [(slot, ran.memories[slot], ran.data[slot]) for slot in LAYOUT.names]
    return np.vstack([matrix(visible_rows(ran.session, *home)) for home in homes])


def design_of(X: FloatArray) -> FloatArray:
    return np.column_stack([X[:, 0], X[:, -2] == 1, X[:, -2] == 2, X[:, -1]])


def combat(Y: FloatArray, Z: FloatArray, site: IntArray) -> FloatArray:
    """Return Y (n, f) as ComBat of pooled rows returns it: one regression with sites.

    Johnson et al., 2007, as neuroCombat 0.2.12 computes it.
    """
    n, sites = len(Y), np.eye(site.max() + 1)[site]
    B = np.linalg.lstsq(np.hstack([sites, Z]), Y, rcond=None)[0]
    k = sites.shape[1]
    expected = sites.mean(axis=0) @ B[:k] + Z @ B[k:]
    spread = np.sqrt(np.square(Y - np.hstack([sites, Z]) @ B).sum(axis=0) / n)
    S = (Y - expected) / spread
    for number in range(k):
        own = S[site == number]
        m, g, d = len(own), own.mean(axis=0), own.var(axis=0, ddof=1)
        centre, width = g.mean(), g.var(ddof=1)
        mean, wide = d.mean(), d.var(ddof=1)
        shape, rate = (2 * wide + mean**2) / wide, (mean * wide + mean**3) / wide
        gamma, delta = g, d
        while True:
            new = (width * m * g + delta * centre) / (width * m + delta)
            ss = np.square(own - new).sum(axis=0)
            next_delta = (0.5 * ss + rate) / (m / 2 + shape - 1)
            change = max(
                (np.abs(new - gamma) / gamma).max(),
                (np.abs(next_delta - delta) / delta).max(),
            )
            gamma, delta = new, next_delta
            if change <= 1e-4:
                break
        S[site == number] = (own - gamma) / np.sqrt(delta)
    return S * spread + expected


def test_columns_are_those_of_combat_on_pooled_rows(ended: simulation.Session) -> None:
    found, expected = clustered(ended), combat(X[:, 1:-2], design_of(X), SITE)
    assert np.abs(found[:, :WIDTH] - expected).max() < 1e-7
    assert np.abs(found[::74, :WIDTH:80] - NEUROCOMBAT).max() < 1e-7
    assert (found[:, WIDTH] == X[:, -1]).all(), "what is no number stays"


def test_gaps_logarithms_and_weights_go_with_site_effects() -> None:
    """A clustered covariate stays as it is, and what fills a gap is harmonised."""
    rows, site, _ = study(1)
    rows[:, 1] = np.exp(rows[:, 1] / 10)
    rows[5:50:9, 2] = np.nan
    smokes = Field(name="smokes", type="boolean", role="describe")
    first = (field("age", 0, 120), field("area0", 0, 1000))
    treatments = (
        Treatment(name="area0", log1p=True, weight=2.0),
        Treatment(name="area1", missing="mean", indicator=True),
    )
    preparation = Preparation(
        harmonise="combat", covariates=("smokes", "age"), fields=treatments
    )
    schema = Schema(fields=(*first, *SCHEMA.fields[2:-1], smokes))
    ran = session(rows, preparation, schema)
    ran.run_to_end()
    found = clustered(ran)
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)[:, 1:-2]
    filled[:, 0] = np.log1p(filled[:, 0])
    expected = combat(filled, rows[:, [-1, 0]], site)
    assert np.abs(np.delete(found, [0, 3], axis=1) - expected).max() < 1e-7
    assert (found[:, 0] == rows[:, 0]).all()
    assert (found[:, 3] == np.isnan(rows[:, 2])).all()


def test_the_pooled_reference_is_that_of_harmonised_rows() -> None:
    parts = simulation.split(X, LAYOUT, 1, dictionary=[SCHEMA])
    agreed = {"dictionary": [SCHEMA], "preparation": [COMBAT]}
    assert simulation.evaluate(LLF, X, parts, seed=1, **agreed).fidelity == 1.0


def test_new_rows_go_the_same_way(ended: simulation.Session) -> None:
    outcome, own = ended.outcomes()["r2c1"], X[60:95]
    assert outcome.predict is not None
    placed = outcome.predict(MatrixSource(own, SCHEMA.names))
    assert (placed.labels == outcome.labels).all()
    with pytest.raises(InvalidData, match="describe different columns"):
        outcome.predict(MatrixSource(own[:, 1:], SCHEMA.names[1:]))
    gap = np.where(np.arange(WIDTH + 3) == 0, np.nan, own)
    with pytest.raises(InvalidData, match="missing in age"):
        outcome.predict(MatrixSource(gap, SCHEMA.names, gaps=True))


def test_columns_without_spread_stay_and_like_ones_are_not_shrunk() -> None:
    rows = X.copy()
    rows[:, 1] = 7.0
    rows[SITE == 1, 2] = 3.0
    ran = session(rows)
    ran.run_to_end()
    found = clustered(ran)
    assert (found[:, 0] == 7.0).all()
    assert np.isfinite(found).all()
    shifts, variances = np.array([0.1, -0.2, 0.3]), np.array([2.0, 2.0, 2.0])
    assert shrink_site_effects(shifts, variances, 10) == (shifts, variances)


# Who reads what


@pytest.mark.threat(75)
def test_sites_read_the_totals_and_the_analyst_nothing(
    ended: simulation.Session,
) -> None:
    packed = [packets.parse(message.payload) for message in ended.sent]
    arrays = [each.arrays for each in packed if each.address.stage == NAME]
    words = [found["words"] for found in arrays if "words" in found]
    handed = {found["total"].tobytes() for found in arrays if "total" in found}
    totals = np.frombuffer(b"".join(handed), np.uint64)
    assert [len(each) for each in words[::3]] == [10 + 5 * WIDTH + 5, WIDTH + 1, 0]
    looks_like_noise(np.concatenate([*words, totals]))
    for slot in LAYOUT.names:
        assert not ended.recall(slot, SumTotals).totals.size, "they are forgotten"
    effects = [ended.recall(slot, SiteEffects) for slot in LAYOUT.names]
    for shared in ("intercepts", "coefficients"):
        assert len({getattr(each, shared).tobytes() for each in effects}) == 1
    regressors = np.hstack([np.eye(3)[SITE], design_of(X)])
    pooled = np.linalg.lstsq(regressors, X[:, 1:-2], rcond=None)[0]
    np.testing.assert_allclose(effects[0].coefficients, pooled[3:], atol=1e-9)
    # a site's own effects are in no message and in no other home
    for slot, own in zip(LAYOUT.names, effects, strict=True):
        others = [ended.memories[name] for name in LAYOUT.names if name != slot]
        kept = [entry for memory in others for entry in memory.entries.values()]
        sent = [message.payload for message in ended.sent]
        elsewhere = b"".join([*ended.stored, *sent, *kept])
        for value in (*own.shifts[:5], *own.scales[:5], *own.scales[:5] ** 2):
            assert value.tobytes() not in elsewhere


# What is refused


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (np.s_[:60, -2], 1, "'ward' has the same value in all your rows"),
        (np.s_[:60, -2], np.arange(60) < 4, "Fewer than 5 of your rows"),
        (np.s_[:60, 0], [119, *np.linspace(50, 51, 59)], "determines more than half"),
        (np.s_[3, 4], 51, "outside the dictionary's range, in area3"),
    ],
)
def test_rows_that_would_tell_of_few_are_refused_before_anything_is_sent(
    place: Any, value: Any, said: str
) -> None:
    rows = X.copy()
    rows[place] = value
    ran = session(rows)
    ran.play_until(AddUp)
    assert ran.open.stage == NAME
    with pytest.raises(InvalidData, match=said):
        ran.answer("r1c1")
    ran.answer("r2c1")


def test_covariates_that_follow_from_each_other_are_refused() -> None:
    rows = X.copy()
    rows[:, -2] = rows[:, -1]  # who smokes is in the second ward
    with pytest.raises(GuardRefused, match="follow from each other"):
        session(rows).run_to_end()


@pytest.mark.parametrize(
    ("said", "fields", "why"),
    [
        ({"covariates": ("height",)}, SCHEMA.fields, "no covariate 'height'"),
        ({"covariates": ("age", "age")}, SCHEMA.fields, "two covariates"),
        ({"covariates": ("area1",)}, SCHEMA.fields[:3], "need 2"),
        ({}, (*SCHEMA.fields, Field(name="free")), "'free' lacks one"),
        ({"harmonise": None, "covariates": ("age",)}, SCHEMA.fields, "covariates need"),
        ({"missing": "leave"}, SCHEMA.fields, "no site effects"),
    ],
)
def test_terms_that_do_not_fit_are_refused(
    said: dict[str, Any], fields: Any, why: str
) -> None:
    treated = {"harmonise": "combat", **said}
    with pytest.raises(ValueError, match=why):
        build_column_plans(1, [Schema(fields=fields)], [Preparation(**treated)])


@pytest.mark.parametrize(
    ("params", "n", "why"),
    [
        ({"allow_two_parties": True}, 2, "3 parties"),
        ({"init": "bounds"}, 3, "site effects are removed"),
    ],
)
def test_layouts_and_ranges_that_do_not_fit_are_refused(
    params: dict[str, Any], n: int, why: str
) -> None:
    llf, layout = LosslessFederated(n_clusters=2, **params), Layout.lattice(n)
    with pytest.raises(InvalidParameters, match=why):
        drawn(llf, layout, dictionary=[SCHEMA], preparation=[COMBAT])


def test_one_field_switches_it_on() -> None:
    """The option and the field of the form read alike."""
    [found] = read_preparation((), "mean", [SCHEMA], None, "age, smokes") or ()
    assert (found.harmonise, found.covariates) == ("combat", ("age", "smokes"))
    assert found.of(SCHEMA.fields[1]).missing == "mean"
    [bare] = read_preparation((), None, [SCHEMA], None, "none") or ()
    assert (bare.harmonise, bare.covariates) == ("combat", ())
    terms = drawn(LLF, LAYOUT, dictionary=[SCHEMA], preparation=[found])
    assert "house.site-effects" in terms.risks
    assert read_preparation((), None, [SCHEMA], terms) == [found], "and is repeated"
    with pytest.raises(InvalidParameters, match="no dictionary has a variable 'bmi'"):
        read_preparation((), None, [SCHEMA], None, "age,bmi")

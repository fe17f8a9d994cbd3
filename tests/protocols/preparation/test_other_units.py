"""A party is warned if its values seem to be in other units than those of others."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.moments import Moments, measure_moments
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.shared_stages.statistics.units import (
    CONVERSIONS,
    Distribution,
    Measurement,
    build_unit_question,
    foreign_distribution,
    measured_columns,
)
from clustering_protocols.terms.preparation import ColumnPlan, Preparation
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Layout


def session(
    n_parties: int, column: list[float], **choices: object
) -> simulation.Session:
    rng = np.random.default_rng(0)
    layout = Layout.lattice(n_parties)
    data = {}
    for slot, unit in zip(layout.names, column, strict=True):
        X = rng.normal(70, 10, size=(40, 3))
        X[:, 2] *= unit
        data[slot] = MatrixSource(X, ["age", "pulse", "weight"])
    params = LosslessFederated(n_clusters=2, allow_two_parties=n_parties == 2)
    given = dict.fromkeys(layout.names, choices)
    return simulation.Session(params, layout, data, 1, choices=given)


@pytest.mark.parametrize(
    "units", [[1, 1, 1000], [1000, 1, 1000], [1, 1000], [1, 1, 1, 1, 1000]]
)
def test_grams_among_kilograms_stop_before_rows_are_used(units: list[float]) -> None:
    with pytest.raises(GuardRefused, match="different units"):
        session(len(units), units).run_to_end()


def test_who_knows_better_goes_on() -> None:
    ran = session(3, [1, 1, 1000], allow_other_units=True).run_to_end()
    assert all(len(outcome.labels) == 40 for outcome in ran.outcomes.values())


@pytest.mark.parametrize("units", [[1, 1, 1], [1, 2, 0.5], [1, 1], [0, 1, 1]])
def test_sites_that_differ_as_sites_do_are_let_be(units: list[float]) -> None:
    session(len(units), units).run_to_end()


def test_a_mean_near_zero_is_not_taken_for_another_unit() -> None:
    rng = np.random.default_rng(1)
    layout = Layout.lattice(3)
    data = {s: MatrixSource(rng.normal(0, 1, size=(500, 2))) for s in layout.names}
    params = LosslessFederated(n_clusters=2)
    simulation.Session(params, layout, data, 1).run_to_end()


# What the question rests on: the moments of the others, and a table of conversions

MMOL = [np.random.default_rng(n).normal(58, 14, n) for n in (342, 305, 253)]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def moments(*tables: np.ndarray) -> Moments:
    rows = np.concatenate(tables)
    return measure_moments(MatrixSource(rows.reshape(len(rows), -1)))


def asked(name: str, own: np.ndarray, *others: np.ndarray, **more: object) -> str:
    here = moments(own)
    pooled = moments(own, *others)
    columns = [Measurement(0, name, name, **more)]  # type: ignore[arg-type]
    own = Distribution.from_moments(here)
    return build_unit_question(columns, own, foreign_distribution(here, pooled))


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_the_others_are_the_pooled_rows_less_the_own(
    scale: float, rng: np.random.Generator
) -> None:
    tables = [rng.normal(5, 2, (n, 3)) * [1, scale, 0] for n in (40, 70, 90)]
    found = foreign_distribution(moments(tables[0]), moments(*tables))
    exact = np.concatenate(tables[1:])
    np.testing.assert_allclose(found.mean, exact.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.deviation, exact.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("fill", [0.0, 5.0, 300.0])
def test_filled_gaps_are_taken_out_of_moments(
    fill: float, rng: np.random.Generator
) -> None:
    values = rng.normal(5, 2, 60)
    filled = moments(np.append(values, np.full(23, fill)))
    gaps = np.array([23]), np.array([fill])
    found = Distribution.from_moments(filled).without_fills(83, *gaps)
    np.testing.assert_allclose(found.mean, values.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.deviation, values.std(), rtol=1e-9)


def test_a_column_of_gaps_alone_says_nothing() -> None:
    filled = Distribution.from_moments(moments(np.full(10, 7.0)))
    found = filled.without_fills(10, np.array([10]), np.array([7.0]))
    assert found.deviation == 0


@pytest.mark.parametrize("how", ["mean", "median"])
@pytest.mark.parametrize("n_parties", [2, 3, 4])
def test_gaps_at_all_sites_silence_no_alarm(
    how: str, n_parties: int, rng: np.random.Generator
) -> None:
    layout = Layout.lattice(n_parties)
    names = ["hba1c", "age"]
    data = {}
    for place, slot in enumerate(layout.names):
        hba1c = np.array((MMOL[0], MMOL[1], PERCENT[2], MMOL[2])[-n_parties:][place])
        hba1c[:: 40 if place else 3] = np.nan
        rows = np.column_stack([hba1c, rng.normal(60, 9, len(hba1c))])
        data[slot] = MatrixSource(rows, names, gaps=True)
    bounds = {"constraints": {"minimum": 0, "maximum": 300}}
    session = simulation.Session(
        LosslessFederated(n_clusters=2, allow_two_parties=n_parties == 2),
        layout,
        data,
        1,
        dictionary=[
            Schema.model_validate({"fields": [{"name": n, **bounds} for n in names]})
        ],
        preparation=[Preparation(fields=[{"name": "hba1c", "missing": how}])],
    )
    with pytest.raises(GuardRefused, match="HbA1c in"):
        session.run_to_end()


def dealt_by_cluster(seed: int, n_parties: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    clusters, centres = draw.integers(0, 5, 600), draw.normal(0, 1, 5)
    rows = np.exp(centres[clusters] + draw.normal(0, 0.4, 600))
    shares = draw.dirichlet([0.1] * n_parties, 5)
    parties = np.array([draw.choice(n_parties, p=shares[each]) for each in clusters])
    tables = [rows[parties == party] for party in range(n_parties)]
    return [table for table in tables if len(table) > 4]


@pytest.mark.parametrize("n_parties", [3, 10])
def test_lognormal_clusters_are_no_other_unit(n_parties: int) -> None:
    alarms, sites = 0, 0
    for seed in range(60):
        tables = dealt_by_cluster(seed, n_parties)
        for place, own in enumerate(tables):
            others = tables[:place] + tables[place + 1 :]
            alarms += bool(others and asked("x", own, *others))
            sites += 1
    assert alarms <= 0.01 * sites, (alarms, sites)


@pytest.mark.parametrize("factor", [1 / 88.4, 88.4, 1000])
def test_a_lognormal_column_in_another_unit_is_still_found(
    factor: float, rng: np.random.Generator
) -> None:
    tables = [rng.lognormal(2, 0.6, 100) for _ in range(3)]
    assert asked("x", tables[0] * factor, *tables[1:])
    assert "insulin" in asked("insulin", tables[0] * 6, *tables[1:])


def test_nobody_else_is_no_other() -> None:
    own = moments(MMOL[0])
    with pytest.raises(ValueError, match="no other rows"):
        foreign_distribution(own, own)


PERCENT = [(each + 23.5) / 10.929 for each in MMOL]
PLANTED = [
    ("hba1c", PERCENT[2], MMOL[:2], "HbA1c in % here, in mmol/mol there"),
    ("HbA1c", MMOL[0], PERCENT[1:], "HbA1c in mmol/mol here, in % there"),
    ("glucose", MMOL[0] * 18.0, MMOL[1:], "glucose in mg/dl here, in mmol/l there"),
    ("Kreatinin", MMOL[0] * 88.4, MMOL[1:], "creatinine in µmol/l here"),
    ("weight", MMOL[0] * 2.2046, MMOL[1:], "weight in pounds here, in kg there"),
    ("body height", MMOL[0] / 2.54, MMOL[1:], "length in inches here, in cm there"),
    ("temp", 1.8 * (37 + MMOL[0] / 99) + 32, [37 + MMOL[1] / 99], "in °F here"),
    ("dose", MMOL[0] * 1000, MMOL[1:], "The factor is likely 0.001."),
    ("x2", MMOL[0] * 18, MMOL[1:], "conversion of glucose from mg/dl to mmol/l"),
    ("x3", MMOL[0] * 5.0, MMOL[1:], "The factor is about 0.2"),
]


@pytest.mark.parametrize(
    ("name", "own", "others", "said"), PLANTED, ids=[each[0] for each in PLANTED]
)
def test_a_wrong_unit_is_asked_about_and_named(
    name: str, own: np.ndarray, others: list[np.ndarray], said: str
) -> None:
    found = asked(name, own, *others)
    assert said in found
    assert f"{name!r}: your mean is {own.mean():.4g}, that of the others" in found
    assert found.endswith("Correct the unit in your table.")
    assert "--choice" not in found, "estimators and 'simulate' show it too"


def test_a_logarithm_in_another_unit_is_a_sum() -> None:
    logs = [np.log1p(each) for each in MMOL]
    far = np.log1p(MMOL[0] * 18)
    assert "glucose in mg/dl" in asked("glucose", far, *logs[1:], is_logarithm=True)
    assert not asked("glucose", logs[0], *logs[1:], is_logarithm=True)


@pytest.mark.parametrize("own", [np.zeros(40), np.full(40, 7.3)])
def test_a_column_that_is_constant_somewhere_is_no_alarm(own: np.ndarray) -> None:
    assert not asked("crp", own, *MMOL[:2])
    assert not asked("crp", MMOL[0], own, own)


def test_a_cluster_of_its_own_is_no_alarm(rng: np.random.Generator) -> None:
    """As hepta dealt by class: seven balls, a few parties with whole balls."""
    centres = 3 * np.vstack([np.zeros(3), np.eye(3), -np.eye(3)])
    balls = [rng.normal(centre, 0.5, (30, 3)) for centre in centres]
    for number, ball in enumerate(balls):
        rest = [each for place, each in enumerate(balls) if place != number]
        for column in range(3):
            others = [each[:, column] for each in rest]
            assert not asked("x", ball[:, column], *others)


def test_a_variety_with_half_the_colour_is_no_alarm() -> None:
    """As wine, a variety at each party: colours differ by 2.06, pounds and kg by 2.20."""
    wine = load_wine()
    colours = [wine.data[wine.target == each, 9] for each in range(3)]
    for place, own in enumerate(colours):
        assert not asked("x9", own, *colours[:place], *colours[place + 1 :])


def test_a_word_that_few_rows_have_is_no_alarm(rng: np.random.Generator) -> None:
    """As spambase dealt by class: 1.5, 8.5 and 25.5 % of the rows are not zero."""
    for _ in range(200):
        shares = rng.permutation([0.015, 0.085, 0.255])
        tables = [
            np.where(rng.random(400) < share, rng.lognormal(0, 1, 400), 0)
            for share in shares
        ]
        assert not asked("word_freq_415", *tables)


def test_dates_levels_and_indicators_are_in_no_unit() -> None:
    dictionary = Schema.model_validate(
        {
            "fields": [
                {"name": "day", "type": "date"},
                {"name": "sex", "type": "string", "categories": ["f", "m"]},
                {"name": "glu", "title": "Glucose", "unit": "mmol/l"},
                {"name": "dose", "constraints": {"minimum": 0}},
            ]
        }
    )
    plan = ColumnPlan(
        dictionary,
        Preparation.model_validate(
            {
                "fields": [
                    {"name": "sex", "missing": "most_frequent"},
                    {"name": "glu", "missing": "mean", "indicator": True},
                    {"name": "dose", "log1p": True},
                ]
            }
        ),
    )
    found = measured_columns(plan.columns, plan, dictionary)
    assert [(each.name, each.is_logarithm) for each in found] == [
        ("glu", False),
        ("dose", True),
    ]
    assert found[0].index == plan.columns.index("glu")
    assert found[0].description == "glu Glucose"


def test_conversions_lead_there_and_back() -> None:
    for each in CONVERSIONS:
        there = each.factor * 7.0 + each.offset
        assert each.inverse.factor * there + each.inverse.offset == pytest.approx(7.0)
    known = {each.quantity: each for each in CONVERSIONS[::2]}
    assert known["HbA1c"].factor * 7 + known["HbA1c"].offset == pytest.approx(
        53, abs=0.1
    )
    assert known["temperature"].factor * 37 + 32 == pytest.approx(98.6)
    assert known["calcium"].matches("serum Ca")
    assert not known["calcium"].matches("cat")


@pytest.mark.parametrize(
    "text",
    ["Triglycerides (mg/dl)", "crp_mg_l", "dose_mg", "dose [mg]", "duration",
     "disability", "psychological", "expression", "pancreas", "dosage", "urea_pg",
     "sodium mmol per l", "bloodCalcMgDl"],
)  # fmt: skip
def test_a_unit_or_the_middle_of_a_word_names_no_quantity(text: str) -> None:
    expected = {
        "Triglycerides (mg/dl)": {"triglycerides"},
        "duration": {"time"},
        "urea_pg": {"urea", "urea nitrogen"},
        "bloodCalcMgDl": {"calcium"},
    }
    named = {c.quantity for c in CONVERSIONS if c.matches(text)}
    assert named == expected.get(text, set())


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("Mg", "magnesium"), ("mg_mmol_l", "magnesium"), ("hb_a1c", "HbA1c"),
        ("HbA1c (%)", "HbA1c"), ("Nüchternblutzucker, Glukose", "glucose"),
        ("LDL-Cholesterin", "cholesterol"), ("bodyWeight", "weight"),
        ("Körpergewicht", "weight"), ("Serumkreatinin", "creatinine"),
        ("glycémie", "glucose"), ("Blutharnstoff", "urea"), ("Harnsäure", "uric acid"),
        ("vitamin_d", "vitamin D"), ("Vitamin D", "vitamin D"), ("25ohd", "vitamin D"),
        ("Krankheitsdauer", "time"), ("Körpertemperatur", "temperature"),
        ("chol2", "cholesterol"), ("age_years", "time"), ("SBP", "pressure"),
        ("TOTCHOL", "cholesterol"), ("ldlchol", "cholesterol"), ("sUrea", "urea"),
        ("bloodpressure", "pressure"), ("serumurea", "urea"), ("bloodgluc", "glucose"),
        ("plasmatrig", "triglycerides"), ("bodytemp", "temperature"),
    ],
)  # fmt: skip
def test_a_name_suggests_its_quantity(text: str, quantity: str) -> None:
    assert quantity in {c.quantity for c in CONVERSIONS if c.matches(text)}


def test_a_higher_value_in_the_same_unit_is_no_alarm(rng: np.random.Generator) -> None:
    own, other = rng.normal(110, 50, 400), rng.normal(230, 130, 400)
    for name in ("Triglycerides (mg/dl)", "crp_mg_l", "dose_mg"):
        assert not asked(name, own, other)
    assert "uric" not in asked("duration", rng.normal(2, 0.5, 99), 60 * own)

"""What pictures draw, against numbers that others compute."""

from __future__ import annotations

import ast
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import StandardScaler
from support import page_models
from support.product import PRODUCT, ROOT, nodes

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.wire.answers import RunLine
from coterie_pages import svg
from coterie_pages.models import Points
from coterie_pages.svg.elements import element, ticks
from coterie_pages.svg.heat import deviations
from party_sdk.results.plots import principal_axes
from party_sdk.tables import open_table


def wine_profile() -> tuple[np.ndarray, np.ndarray, Profile]:
    X, labels = load_wine(return_X_y=True)
    groups = [X[labels == label] for label in range(3)]
    fields = tuple(
        FieldProfile(
            name=f"f{column}",
            n_rows=tuple(len(group) for group in groups),
            mean=tuple(group[:, column].mean() for group in groups),
            spread=tuple(group[:, column].std() for group in groups),
            difference=0.0,
        )
        for column in range(X.shape[1])
    )
    profile = Profile(
        column=0,
        own=True,
        clusters=(0, 1, 2),
        n_rows=tuple(map(len, groups)),
        rounded=False,
        fields=fields,
    )
    return X, labels, profile


def test_deviations_add_up_to_the_f_values_of_anova() -> None:
    """Σ n_c z_c² = F (k - 1) n / (n - k), with F from scikit-learn on the rows."""
    X, labels, profile = wine_profile()
    n, k = len(X), 3
    z = np.array([row.values for row in deviations(profile)], dtype=float)
    sums = (z**2 * np.bincount(labels)).sum(axis=1)
    F, _ = f_classif(X, labels)
    assert sums == pytest.approx(F * (k - 1) * n / (n - k), rel=1e-9)


def test_levels_are_heat_map_rows_and_unpublished_cells_none() -> None:
    rows = {row.name: row.values for row in deviations(page_models.profile())}
    assert rows["Ward of the first night: surgery"][3] is None
    assert rows["Age at admission"][3] is None
    shares, n = np.array([0.8, 0.2, 0.1]), np.array([600, 400, 180])
    mean = (n * shares).sum() / n.sum()
    within = np.sqrt((n * shares * (1 - shares)).sum() / n.sum())
    assert rows["Ward of the first night: surgery"][:3] == pytest.approx(
        (shares - mean) / within
    )


def test_points_are_the_principal_components_of_scikit_learn() -> None:
    X, labels = load_wine(return_X_y=True)
    found = principal_axes(open_table(X), labels, most=10_000)
    reference = PCA(n_components=2).fit(StandardScaler().fit_transform(X))
    expected = reference.transform(StandardScaler().fit_transform(X))
    assert np.abs(found.places) == pytest.approx(np.abs(expected), abs=1e-9)
    assert found.explained == pytest.approx(reference.explained_variance_ratio_)
    assert found.labels.tolist() == labels.tolist()


def test_of_many_rows_some_are_drawn_evenly_over_the_table() -> None:
    X = np.random.default_rng(0).normal(size=(1000, 3))
    found = principal_axes(open_table(X), np.arange(1000), most=100)
    assert found.labels.tolist() == list(range(0, 1000, 10))


def test_one_column_has_one_axis() -> None:
    X = np.arange(6.0).reshape(-1, 1)
    found = principal_axes(open_table(X), np.zeros(6, dtype=np.int64), most=10)
    assert found.places[:, 1].tolist() == [0.0] * 6
    assert found.explained == pytest.approx((1.0, 0.0))


def test_bars_are_as_long_as_their_clusters_are_large() -> None:
    root = ElementTree.fromstring(svg.bars("b", "sizes", [100, 50, 0]))
    widths = [float(str(each.get("width"))) for each in root.iter("rect")]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    assert widths[2] == 0
    assert "100 (67%)" in [each.text for each in root.iter("text")]


def test_a_picture_of_every_point_is_within_its_frame() -> None:
    points = page_models.points(2000)
    root = ElementTree.fromstring(svg.scatter("p", "rows", points))
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    starts = [
        tuple(map(float, place))
        for path in root.iter("path")
        for place in re.findall(r"M([\d.]+),([\d.]+)", str(path.get("d")))
    ]
    clusters = set(points.labels)
    assert len(starts) == len(points.x) + len(clusters)  # and a key for each
    assert all(0 <= x <= width and 0 <= y <= height for x, y in starts)


def test_a_figure_that_one_run_has_is_no_curve() -> None:
    one = RunLine(n_clusters=2, figures={"n_clusters": 2, "inertia": 1.0}, chosen=True)
    assert svg.curves("c", "figures", [one]) == ""
    assert svg.curves("c", "figures", []) == ""


def test_equal_points_and_equal_figures_are_drawn() -> None:
    same = Points(x=(1.0, 1.0), y=(2.0, 2.0), labels=(0, 0), explained=(0, 0), n_rows=2)
    assert "NaN" not in svg.scatter("p", "rows", same)
    runs = [
        RunLine(n_clusters=k, figures={"inertia": 5.0}, chosen=False) for k in (2, 3)
    ]
    assert "NaN" not in svg.curves("c", "figures", runs)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 10, [0, 5, 10]), (0.31, 0.52, [0.35, 0.4, 0.45, 0.5]), (3, 3, [3])],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    found = ticks(low, high)
    assert found[0] >= low
    assert found[-1] <= high + 1e-9
    assert all(f"{value:.6g}" == f"{round(value, 6):g}" for value in found)
    assert set(np.round(expected, 6)) <= set(np.round(found, 6)) or len(found) >= 2


def test_texts_of_elements_are_escaped() -> None:
    found = element("text", "<b>&", title='"')
    assert str(found) == '<text title="&#34;">&lt;b&gt;&amp;</text>'


def test_lines_of_several_cases_are_told_apart() -> None:
    figures = {"inertia": 5.0, "gap": None}
    runs = [RunLine(n_clusters=k, figures=figures, chosen=k == 3) for k in (2, 3)]
    lines = [svg.Curve("dc 3x1", runs, 0, 0), svg.Curve("llf 3x1", runs[:1], 1, 0)]
    groups = [("north.csv", lines), ("south.csv", lines[:1])]
    root = ElementTree.fromstring(svg.compared_curves("c", "figures", groups))
    texts = [text.text for text in root.iter("text")]
    assert [texts.count(name) for name in ("north.csv", "inertia", "gap")] == [1, 2, 0]
    assert texts[-2:] == ["dc 3x1", "llf 3x1"]  # the key, each line once
    styles = {line.get("style") for line in root.iter("polyline")}
    assert {style.split(";")[0] for style in styles if style} == {
        "stroke:var(--c0)",
        "stroke:var(--c1)",
    }
    assert len([e for e in root.iter("circle") if e.get("class") == "ring"]) == 2


def test_a_matrix_is_drawn_in_shades() -> None:
    cells = [[0.0, 1.0], [0.5, 0.01]]
    root = ElementTree.fromstring(svg.blocks("m", "matrix", cells, ([0.5], [])))
    shades = [path.get("fill-opacity") for path in root.iter("path")]
    assert shades == ["0.125", "0.500", "1.000"]  # nothing is drawn where nothing is
    assert len(list(root.iter("line"))) == 1


def test_a_picture_by_itself_has_the_style_of_the_pages() -> None:
    drawn = svg.standalone(svg.bars("b", "sizes", [3, 1]))
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "--c0" in (root[0].text or "")


def test_nothing_imports_matplotlib() -> None:
    folders = [ROOT / name for name in (*PRODUCT, "benchmarks", "tests")]
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    found = [
        path
        for path in paths
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any("matplotlib" in name for name in named(node))
    ]
    assert not found


def named(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Modules that a statement imports from."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [each.name for each in node.names]

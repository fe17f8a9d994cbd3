"""What pictures draw, against numbers that others compute."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import StandardScaler
from support import page_models

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from coterie_pages import svg
from coterie_pages.svg import deviations
from party_sdk.results.plots import project_rows
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
    found = project_rows(open_table(X), labels, limit=10_000)
    reference = PCA(n_components=2).fit(StandardScaler().fit_transform(X))
    expected = reference.transform(StandardScaler().fit_transform(X))
    positions = np.abs(np.column_stack([found.x, found.y]))
    assert positions == pytest.approx(np.abs(expected), abs=1e-4)
    assert found.explained == pytest.approx(reference.explained_variance_ratio_)
    assert list(found.labels) == labels.tolist()


def test_ellipses_of_a_mixture_are_two_standard_deviations_of_its_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) * [3.0, 1.0, 0.1] + 5.0
    found = project_rows(
        open_table(X),
        np.zeros(len(X), dtype=np.int64),
        units=np.ones(3),
        limit=10_000,
        means=X.mean(axis=0)[None],
        covariances=np.cov(X.T)[None],
    )
    away = np.hypot(found.outlines[0].x, found.outlines[0].y)
    assert away.max() == pytest.approx(2 * np.std(found.x), rel=1e-3)
    assert away.min() == pytest.approx(2 * np.std(found.y), rel=1e-2)
    drawn = str(svg.draw_scatter("p", "rows", found))
    assert drawn.count('class="step c0"') == 1


def test_a_heat_map_counts_clusters_as_the_other_tables_of_its_page() -> None:
    _, _, profile = wine_profile()
    texts = [
        each.text
        for sizes in ((60, 70, 50), (60, 70))
        for each in ElementTree.fromstring(
            svg.draw_heat_map("h", "clusters", profile, sizes=sizes)
        ).iter("text")
    ]
    counts = [said for said in texts if said and said.endswith(" rows")]
    assert counts == ["60 rows", "70 rows", "50 rows", "59 rows", "71 rows", "48 rows"]


def test_a_picture_of_every_point_is_within_its_frame() -> None:
    points = page_models.points(2000)
    root = ElementTree.fromstring(svg.draw_scatter("p", "rows", points))
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    starts = [
        tuple(map(float, place))
        for path in root.iter("path")
        for place in re.findall(r"M([\d.]+),([\d.]+)", str(path.get("d")))
    ]
    clusters = set(points.labels)
    assert len(starts) == len(points.x) + len(clusters)  # and a key for each
    assert all(0 <= x <= width and 0 <= y <= height for x, y in starts)


def test_a_picture_by_itself_has_the_style_of_the_pages() -> None:
    drawn = svg.standalone(svg.draw_changes("c", "moved", [3.0, 1.0]))
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "--c0" in (root[0].text or "")

"""The report of a session that could have been: its numbers are scikit-learn's, of wine.

For pictures of the documentation, which show no figure that nobody computed.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)
from sklearn.preprocessing import StandardScaler
from support import page_models

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.session_terms import draw_up
from clustering_protocols.terms.schema import Field, Schema
from clustering_protocols.terms.terms import (
    About,
    Layout,
    SessionRequest,
    Slot,
    read_terms,
)
from clustering_protocols.wire.answers import RunLine
from coterie_pages.models import Points, RunReport
from coterie_pages.views.terms_sheet import sheet_of
from party_sdk.reports.run_reports import find_agreement
from party_sdk.results.plots import principal_axes
from party_sdk.tables import open_table

_CHOSEN = 3


def wine_report() -> RunReport:
    """What the first of two parties would read, each with a half of the rows."""
    X, names = load_wine().data, load_wine().feature_names
    Z = StandardScaler().fit_transform(X)
    labels = {
        k: KMeans(k, n_init=10, random_state=0).fit(Z).labels_ for k in range(2, 8)
    }
    own = np.arange(len(X)) < len(X) // 2
    drawn = principal_axes(open_table(X[own]), labels[_CHOSEN][own], most=1000)
    text = _terms(names)
    way, measured = find_agreement(read_terms(text))
    return RunReport(
        session="wine",
        title="Wine by rows",
        protocol="dc",
        sheet=sheet_of(text, read_terms(text), {}, slot="north"),
        seats=tuple(
            seat.model_copy(update={"title": "", "n_rows": 89, "n_columns": 13})
            for seat in page_models.seats()[:2]
        ),
        runs=tuple(_run(Z, each, k) for k, each in labels.items()),
        sizes=tuple(np.bincount(labels[_CHOSEN]).tolist()),
        own_sizes=tuple(np.bincount(labels[_CHOSEN][own]).tolist()),
        profiles=(_profile(X, labels[_CHOSEN], names),),
        way=way,
        measured=measured,
        versions=page_models.VERSIONS,
        slot="north",
        complete=True,
        n_rows=int(own.sum()),
        points=Points(
            x=tuple(drawn.positions[:, 0].tolist()),
            y=tuple(drawn.positions[:, 1].tolist()),
            labels=tuple(drawn.labels.tolist()),
            explained=drawn.explained,
            n_rows=int(own.sum()),
        ),
    )


def _terms(names: list[str]) -> bytes:
    slots = tuple(
        Slot(name=name, row=row, column=0)
        for row, name in enumerate(("north", "south"))
    )
    proposal = SessionRequest(
        about=About(title="Wine by rows", purpose="Which wines resemble each other."),
        protocol={"name": "dc", "params": {"n_clusters": 7}},
        layout=Layout(slots=slots),
        dictionary=(Schema(fields=tuple(Field(name=name) for name in names)),),
        evaluation={"n_clusters": tuple(range(2, 8))},
        seed=1,
    )
    return draw_up("wine", proposal)


def _run(Z: np.ndarray, labels: np.ndarray, k: int) -> RunLine:
    centres = np.array([Z[labels == cluster].mean(axis=0) for cluster in range(k)])
    figures = {
        "n_clusters": k,
        "inertia": float(((Z - centres[labels]) ** 2).sum()),
        "silhouette": float(silhouette_score(Z, labels)),
        "calinski_harabasz": float(calinski_harabasz_score(Z, labels)),
        "davies_bouldin": float(davies_bouldin_score(Z, labels)),
    }
    return RunLine(n_clusters=k, figures=figures, chosen=k == _CHOSEN)


def _profile(X: np.ndarray, labels: np.ndarray, names: list[str]) -> Profile:
    groups = [X[labels == cluster] for cluster in range(_CHOSEN)]
    sizes = tuple(map(len, groups))
    fields = []
    for column, name in enumerate(names):
        values = [group[:, column] for group in groups]
        within = np.sqrt(np.average([v.var() for v in values], weights=sizes))
        means = np.array([v.mean() for v in values])
        centre = np.average(means, weights=sizes)
        between = np.sqrt(np.average((means - centre) ** 2, weights=sizes))
        fields.append(
            FieldProfile(
                name=name,
                title=name.replace("_", " "),
                n_rows=sizes,
                mean=tuple(means.tolist()),
                spread=tuple(float(v.std()) for v in values),
                quartiles=tuple(
                    tuple(np.quantile(v, [0.25, 0.5, 0.75]).tolist()) for v in values
                ),
                difference=float(between / within),
            )
        )
    fields.sort(key=lambda field: -field.difference)
    return Profile(
        column=0,
        own=False,
        clusters=(0, 1, 2),
        n_rows=sizes,
        rounded=False,
        fields=tuple(fields),
    )

"""The estimators, one for each clustering method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.sections import Evaluation
from party_sdk.estimators.base import (
    CentreBasedClusterer,
    FederatedClusterer,
    as_value_errors,
    can_label_new_rows,
    check_no_extra_arguments,
    weighted_means,
)
from party_sdk.lab.simulated_session import SimulatedSession


class FederatedKMeans(CentreBasedClusterer):
    """K-means over the tables of several parties, simulated in this process.

    Parameters
    ----------
    n_clusters : int, range or sequence of int
        The number of clusters. For several numbers, the session has one run for each,
        and ``choose`` selects the run that gives the labels.
    protocol : {'dc', 'llf', 'omnifc', 'pqmds'}, optional
        The protocol, which may also be any other that has k-means; 'dc' by default.
        The default of the other estimators is the first protocol that they list.
    layout : 'rows', 'columns', (int, int) or Layout, optional
        The parties, and what each of them holds; see
        :func:`~party_sdk.lab.simulated_session.simulate`.
    n_init, max_iter : int, optional
        The numbers of starts and of iterations; by default those of the protocol.
        'llf' and 'mixture' have one start, and refuse ``n_init``.
    params : mapping, optional
        Other parameters of the protocol, such as ``{"scaling": "none"}``. By default
        features are divided by their pooled standard deviations.
    choose : str, optional
        The quality measure that selects one of several runs, e.g. 'davies_bouldin';
        by default the simplified silhouette, if the protocol computes it.
    id_column : str or sequence of str, optional
        The columns with the row ids in every table.
    dictionary : Schema or sequence of Schema, optional
        The data dictionary of each column group, which describes its columns.
    preparation : {'drop', 'mean', 'median'}, Preparation or sequence of these, optional
        How missing values and categories are treated: one rule, or the preparation of
        each column group.
    choices : mapping, optional
        The decisions that every party makes, e.g. ``{"allow_other_units": True}``.
    allow : sequence of str
        The checks of tables that are disabled, e.g. 'running-number'.
    random_state : int, RandomState or None
        The seed of the session; a random one by default.

    Attributes
    ----------
    labels_ : list of int64 arrays, or int64 array of shape (n_samples,)
        The cluster of each row, as one array per table if a list of tables was fitted;
        -1 for rows that did not take part.
    cluster_centers_ : float64 array of shape (n_clusters, n_features_in_)
        The mean of all rows of each cluster, in the units of the tables. In a real
        session, only some protocols disclose it to parties.
    n_clusters_ : int
        The number of clusters of the selected run.
    quality_ : dict of arrays
        The quality measures of each run, as columns for ``pandas.DataFrame``.
    inertia_ : float or None
        The inertia of the selected run, to six digits, in the units in which rows were
        compared; None if the protocol does not compute it.
    n_iter_ : int or None
    fidelity_ : float or None
        The adjusted Rand index between these labels and those of the same clustering of
        the pooled tables from the same start; 1 means that nothing was lost.
    pooled_agreement_ : float or None
        The adjusted Rand index between these labels and those of the pooled method's
        best of ten starts.
    objective_ratio_ : float or None
        The objective divided by that of the pooled method with ten starts: 1 is as
        good as a pooled analysis, and larger values are worse.
    objective_ratio_same_rules_ : float or None
        The objective divided by that of the pooled method under the session's rules:
        small clusters do not move, and dimensions may be left out.
    site_agreement_ : float or None
        How closely the clusters follow the row groups, from about 0 (not at all) to 1
        (exactly); None if all tables hold the same rows.
    n_features_in_ : int
        The number of columns of all column groups together.
    feature_names_in_ : array of str of shape (n_features_in_,)
        The names of these columns; defined only if the tables name their columns.
    session_ : SimulatedSession
        The complete outcome: the result of each party, the rounds, and the bytes sent.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import FederatedKMeans
    >>> X = load_iris().data
    >>> estimator = FederatedKMeans(3, layout="rows", random_state=0)
    >>> north, south = estimator.fit_predict([X[0::2], X[1::2]])
    """

    algorithms = ("kmeans", "cmeans")

    @available_if(can_label_new_rows)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None, **more: Any) -> float:
        """Return the negative sum of squared distances of new rows to their centres.

        This is ``KMeans.score`` of scikit-learn, in the units in which the session
        compared rows. Rows without a label are ignored.

        Parameters
        ----------
        X : table, or list of tables
            As for :meth:`predict`.
        y : ignored
        **more : none
            As for :meth:`fit`.

        Returns
        -------
        float

        Raises
        ------
        CannotCluster
            As for :meth:`predict`.
        """
        del y
        with as_value_errors():
            check_no_extra_arguments(more)
        distances = self._predict_tables(X, lambda rows: rows.distances)
        tables = distances if isinstance(distances, list) else [distances]
        return -float(sum(np.nansum(np.square(values)) for values in tables))

    def _set_attributes(self, session: SimulatedSession) -> None:
        super()._set_attributes(session)
        labels = session.whole.labels
        weights = labels[:, None] == np.arange(session.n_clusters or 0)
        self.cluster_centers_ = weighted_means(
            session.whole, weights.astype(np.float64)
        )


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedFuzzyCMeans(CentreBasedClusterer):
    """Fuzzy c-means over the tables of several parties, simulated in this process.

    It has the parameters and attributes of :class:`FederatedKMeans`, and the following.

    Parameters
    ----------
    protocol : {'omnifc', 'llf'}
    fuzzifier : float or 'auto'
        The exponent of the memberships, above 1. 'auto' computes it from the numbers of
        rows and columns (Schwämmle and Jensen, 2010), between 1.1 and 2.

    Attributes
    ----------
    memberships_ : list of float64 arrays, or float64 array of shape (n_samples, n_clusters)
        How much each row belongs to each cluster, in the form of ``labels_``.
    cluster_centers_ : float64 array of shape (n_clusters, n_features_in_)
        The means of all rows, weighted by their memberships to the power of the
        fuzzifier that the session used (``session_.params``).
    """

    algorithms = ("fuzzy_cmeans",)
    usual_protocol = "omnifc"

    fuzzifier: float | Literal["auto"] = "auto"

    def _options(self, model: type[Params]) -> dict[str, Any]:
        names = {"fuzzifier", "fuzziness"} & model.model_fields.keys()
        return {**super()._options(model), **dict.fromkeys(names, self.fuzzifier)}

    def _set_attributes(self, session: SimulatedSession) -> None:
        super()._set_attributes(session)
        whole = session.whole
        self.memberships_ = memberships_of(session)
        if whole.memberships is not None:
            weights = whole.memberships**session.params.exponent
            self.cluster_centers_ = weighted_means(whole, weights)


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedGaussianMixture(FederatedClusterer):
    """A Gaussian mixture over the tables of several parties, simulated in this process.

    Parameters and attributes are those of :class:`FederatedKMeans` without
    ``cluster_centers_``, and the following. The number of rows limits the updates of a
    session: ``session_.figures.converged`` says whether they were enough.

    Parameters
    ----------
    protocol : {'mixture'}
    covariance_type : {'full', 'tied', 'diag', 'spherical'}
        As in ``GaussianMixture`` of scikit-learn.

    Attributes
    ----------
    memberships_ : list of float64 arrays, or float64 array of shape (n_samples, n_clusters)
        The probability of each component for each row, in the form of ``labels_``.
    weights_ : float64 array of shape (n_clusters,)
    means_ : float64 array of shape (n_clusters, n_columns)
        In the units of the clustered columns, like ``covariances_``.
    covariances_ : float64 array of shape (n_clusters, n_columns, n_columns)
    aic_, bic_, icl_ : float
        The information criteria of the selected run, to six digits.
    """

    algorithms: ClassVar = ("gaussian_mixture",)

    protocol: str | None = "mixture"
    covariance_type: Literal["full", "tied", "diag", "spherical"] = "full"

    def _options(self, model: type[Params]) -> dict[str, Any]:
        return {**super()._options(model), "covariance_type": self.covariance_type}

    def _set_attributes(self, session: SimulatedSession) -> None:
        super()._set_attributes(session)
        result = session.results[0]
        self.memberships_ = memberships_of(session)
        self.weights_ = np.array(result.report["weights"])
        self.means_, self.covariances_ = result.centroids, result.covariances
        figures = result.figures[result.chosen]
        self.aic_, self.bic_, self.icl_ = figures.aic, figures.bic, figures.icl


class FederatedLatentClass(FederatedGaussianMixture):
    """Latent classes over the tables of several parties, simulated in this process.

    Parameters and attributes are those of :class:`FederatedGaussianMixture`.
    ``dictionary`` declares the levels of the variables. Numeric variables are clustered
    as well, with ``covariance_type``. ``means_`` has a column for each level of a
    category: the proportion of the level, times 1/√2. A yes-or-no variable has one
    column, the proportion of yes.

    Parameters
    ----------
    dictionary : Schema or sequence of Schema
    preparation : {'drop', 'mean', 'median'}, Preparation or sequence of these
    """

    algorithms: ClassVar = ("latent_class",)

    def build_params(self) -> tuple[Params, Evaluation | None]:
        """Return the session's parameters, and its runs if there are several.

        Raises InvalidParameters if the dictionary or the preparation is missing.
        """
        if self.dictionary is None or self.preparation is None:
            raise InvalidParameters(
                "latent classes need a dictionary, which declares the levels, and a "
                "preparation.",
                field="dictionary",
            )
        return super().build_params()


class FederatedSpectralClustering(FederatedClusterer):
    """Spectral clustering over the tables of several parties, simulated in this process.

    Parameters and attributes are those of :class:`FederatedKMeans`, without
    ``cluster_centers_``: spectral clusters need not lie around a centre.

    Parameters
    ----------
    protocol : {'dc', 'omnifc'}
    """

    algorithms = ("spectral",)


class FederatedCoClustering(FederatedClusterer):
    """Fuzzy co-clustering of objects and items, simulated in this process.

    Each party holds different items (columns) of the same objects (rows). Parameters and
    attributes are those of :class:`FederatedKMeans` without ``cluster_centers_``; it
    takes no dictionary, and the default layout is 'columns'.

    A table needs at least three columns, one for each of three parties. Two parties are
    refused, because each could subtract its own share from the total of every object.
    Simulations refuse them too, so scikit-learn's checks with two columns fail.

    Parameters
    ----------
    protocol : {'fccm'}

    Attributes
    ----------
    memberships_ : list of float64 arrays, or float64 array of shape (n_samples, n_clusters)
        How much each object belongs to each co-cluster, in the form of ``labels_``.
    item_memberships_ : float64 array of shape (n_clusters, n_features_in_)
        How much each column belongs to each co-cluster.
    column_labels_ : int64 array of shape (n_features_in_,)
        The co-cluster to which each column belongs most.
    """

    algorithms = ("fccm",)
    usual_protocol = "fccm"
    usual_layout = "columns"

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags, which say that values must not be negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _set_attributes(self, session: SimulatedSession) -> None:
        super()._set_attributes(session)
        whole = session.whole
        self.memberships_ = memberships_of(session)
        parts = [result.item_memberships for result in session.results]
        memberships = [part for part in parts if part is not None]
        if memberships:
            self.item_memberships_ = np.empty((len(memberships[0]), len(whole.columns)))
            self.item_memberships_[:, whole.order] = np.hstack(memberships)
            labels: IntArray = self.item_memberships_.argmax(axis=0)
            self.column_labels_ = labels


def memberships_of(
    session: SimulatedSession,
) -> FloatArray | Sequence[FloatArray | None] | None:
    """Return the memberships in the form of ``labels_``: a list, or one array."""
    if isinstance(session.labels, list):
        return [result.memberships for result in session.results]
    return session.whole.memberships

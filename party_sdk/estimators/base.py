"""The base class of all estimators: session parameters, `fit`, and fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import narwhals as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, TransformerTags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from clustering_protocols import catalogue
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import MatrixSource, SparseSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.sections import Evaluation
from party_sdk.coordinator.option_parsing import parse_runs
from party_sdk.lab.parties import LayoutSpec
from party_sdk.lab.simulated_session import PooledRows, SimulatedSession, simulate
from party_sdk.results.new_rows import NewRows
from party_sdk.results.results import Result
from party_sdk.tables import IdColumns

_SEEDS = 2**31 - 1
_LARGEST_SEED = 2**53 - 1  # as in terms: exact as a double in any language


def can_label_new_rows(estimator: Any) -> bool:
    """Return whether an estimator can label new rows; before fitting, whether it might.

    Raises GuardRefused if a fitted estimator cannot label new rows. scikit-learn shows
    this error as the cause of its own error.
    """
    if estimator.__sklearn_is_fitted__():
        result: Result = estimator.session_.results[0]
        result.check_can_label_new_rows()
        return True
    params, _ = estimator.build_params()
    name = estimator.protocol or estimator.usual_protocol
    return catalogue.protocol(name).may_label_new_rows(params)


if TYPE_CHECKING:

    class _ScikitClusterer:
        """The methods of scikit-learn's base classes that are used here, with types."""

        def get_params(self, deep: Any = True) -> dict[str, Any]: ...  # noqa: FBT002
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Tags: ...

else:

    class _ScikitClusterer(ClusterMixin, BaseEstimator):
        """The base classes from scikit-learn."""


# scikit-learn reads the names of the parameters from the __init__ of each class.
@dataclass(eq=False, repr=False)
class FederatedClusterer(_ScikitClusterer):
    """Base class of the estimators; a subclass names the methods it uses.

    Attributes
    ----------
    algorithms : tuple of str
        The names that the protocols give the method; see
        :class:`~clustering_protocols.common.suitability.Method`.
    usual_protocol, usual_layout : defaults for ``protocol`` and ``layout``
    """

    algorithms: ClassVar[tuple[str, ...]]
    usual_protocol: ClassVar[str] = "dc"
    usual_layout: ClassVar[LayoutSpec | None] = None

    n_clusters: int | Sequence[int] = 8
    _: KW_ONLY
    protocol: str | None = None
    layout: LayoutSpec | None = None
    n_init: int | None = None
    max_iter: int | None = None
    params: Mapping[str, Any] | None = None
    choose: str | None = None
    id_column: IdColumns = None
    dictionary: Any = None
    preparation: Any = None
    choices: Mapping[str, Any] | None = None
    allow: Sequence[str] = ()
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, **more: Any) -> Self:
        """Simulate a session of parties that hold these tables.

        Parameters
        ----------
        X : list of tables, or one table
            One table for each party, or one table that is split by ``layout``. A table is
            a matrix, a table of pandas, polars or pyarrow, or a path. Lists of numbers
            are the rows of one table.
        y : ignored
        **more : none
            All rows have the same weight: ``sample_weight`` is refused.

        Returns
        -------
        self

        Raises
        ------
        CannotCluster
            If a session of these parties would fail; it is a ValueError.
        """
        del y
        X = convert_to_matrix(X)
        with as_value_errors(single_column_prefix(X)):
            check_no_extra_arguments(more)
            check_matrix(X)
            params, evaluation = self.build_params()
            session = simulate(
                params,
                X,
                self.layout or self.usual_layout,
                id_column=self.id_column,
                dictionary=self.dictionary,
                preparation=self.preparation,
                evaluation=evaluation,
                choices=_check_mapping("choices", self.choices),
                allow=self.allow,
                seed=self._session_seed(),
            )
        self._set_attributes(session)
        return self

    def fit_predict(self, X: Any, y: Any = None, **more: Any) -> Any:
        """Simulate a session, and return ``labels_``."""
        return self.fit(X, y, **more).labels_

    @available_if(can_label_new_rows)  # type: ignore[untyped-decorator]  # of scikit-learn
    def predict(self, X: Any) -> Any:
        """Label new rows with the model that the session releases to its parties.

        ``llf`` over split rows and ``mixture`` release a model. ``dc`` releases one
        with ``params={"predictor": True}``.

        Parameters
        ----------
        X : table, or list of tables
            New rows, with their columns in any order; a matrix in the session's order.

        Returns
        -------
        int64 array of shape (n_rows,), or a list of them

        Raises
        ------
        AttributeError
            If the session releases no model; the cause says what would release one.
        CannotCluster
            If the columns are not those of the session.
        """
        return self._predict_tables(X, lambda rows: rows.labels)

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags, which say that sparse tables are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether :meth:`fit` has finished."""
        return hasattr(self, "session_")

    # The parameters of the session

    def build_params(self) -> tuple[Params, Evaluation | None]:
        """Return the session's parameters, and its runs if there are several."""
        protocol = self.protocol or self.usual_protocol
        definition = catalogue.protocol(protocol)
        methods = [
            method for method in definition.methods if method.name in self.algorithms
        ]
        if not methods:
            names = sorted(
                name
                for name, other in catalogue.catalogue().items()
                if any(method.name in self.algorithms for method in other.methods)
            )
            raise InvalidParameters(
                f"{protocol!r} does not have this method; protocols with it are "
                f"{', '.join(names)}.",
                field="protocol",
            )
        own_values = {
            "n_clusters": self._plain_n_clusters(),
            **methods[0].params,
            **self._options(definition.params),
        }
        values = {
            **definition.in_simulations,
            **own_values,
            **_check_mapping("params", self.params),
        }
        if repeated := sorted({*own_values, "algorithm"} & (self.params or {}).keys()):
            raise InvalidParameters(
                f"{repeated[0]!r} is fixed by this estimator, or has its own argument.",
                field="params",
            )
        values_of_run, evaluation = parse_runs(values, self.choose)
        if evaluation is not None and evaluation.choose == "later":
            raise InvalidParameters(
                "'later' needs a coordinator who chooses; read quality_ instead.",
                field="choose",
            )
        return catalogue.parse_params(protocol, values_of_run), evaluation

    def _session_seed(self) -> int:
        """Return the session's seed; non-negative integers are used unchanged."""
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            return int(seed.integers(_SEEDS))
        if isinstance(seed, int | np.integer) and seed >= 0:
            if seed > _LARGEST_SEED:
                raise InvalidParameters(
                    f"at most {_LARGEST_SEED}.", field="random_state"
                )
            return int(seed)
        return int(check_random_state(seed).randint(_SEEDS))

    def _options(self, model: type[Params]) -> dict[str, Any]:
        del model
        values = {"n_init": self.n_init, "max_iter": self.max_iter}
        return {name: value for name, value in values.items() if value is not None}

    def _plain_n_clusters(self) -> Any:
        value: Any = self.n_clusters
        is_plain = isinstance(value, range | str) or np.ndim(value) == 0
        if is_plain and not isinstance(value, np.generic):
            return value
        return np.asarray(value).tolist()

    # The fitted attributes

    def _set_attributes(self, session: SimulatedSession) -> None:
        whole = session.whole
        self.session_ = session
        self.labels_ = session.labels
        self.n_clusters_ = session.n_clusters
        self.quality_ = session.quality
        self.fidelity_ = session.fidelity
        self.pooled_agreement_ = session.pooled_agreement
        self.objective_ratio_ = session.objective_ratio
        self.objective_ratio_same_rules_ = session.objective_ratio_same_rules
        self.site_agreement_ = session.site_agreement
        self.n_features_in_ = len(whole.columns)
        if whole.has_names:
            self.feature_names_in_ = np.asarray(whole.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        figures = session.figures
        self.inertia_ = None if figures is None else figures.inertia
        self.n_iter_ = None if figures is None else figures.n_iter

    def _predict_tables(self, X: Any, part: Callable[[NewRows], Any]) -> Any:
        """Label new rows; return a part of the result for one table or for several."""
        check_is_fitted(self)
        X = convert_to_matrix(X)
        if isinstance(X, list | tuple):
            return [part(self._predict_rows(table)) for table in X]
        return part(self._predict_rows(X))

    def _predict_rows(self, table: Any) -> NewRows:
        session: SimulatedSession = self.session_
        result: Result = session.results[0]
        table = convert_to_matrix(table)
        with as_value_errors():
            if isinstance(table, MatrixSource | SparseSource):
                table = matrix(table)
            if isinstance(table, np.ndarray) or issparse(table):
                self._check_number_of_features(table)
                dense = table.toarray() if issparse(table) else table
                table = dense[:, session.whole.order]
            return result.predict(table)

    def _check_number_of_features(self, table: Any) -> None:
        n_features = self.n_features_in_
        if table.ndim != 2:
            raise InvalidParameters(
                f"X has shape {table.shape}. Reshape your data: the session clustered "
                f"{n_features} columns."
            )
        if table.shape[1] != n_features:
            raise InvalidParameters(
                f"X has {table.shape[1]} features, but {type(self).__name__} is "
                f"expecting {n_features} features as input: the session clustered {n_features} "
                "columns."
            )


class CentreBasedClusterer(FederatedClusterer):
    """Base class of the estimators whose clusters have centres."""

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags, which say that rows can be transformed."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    @available_if(can_label_new_rows)  # type: ignore[untyped-decorator]  # of scikit-learn
    def transform(self, X: Any) -> Any:
        """Return the distances of new rows to all centres.

        Parameters
        ----------
        X : table, or list of tables
            As for :meth:`predict`.

        Returns
        -------
        float64 array of shape (n_rows, n_clusters), or a list of them
            The units are those of the session, usually standard deviations.

        Raises
        ------
        CannotCluster
            As for :meth:`predict`.
        """
        return self._predict_tables(X, lambda rows: rows.centre_distances)

    @available_if(can_label_new_rows)  # type: ignore[untyped-decorator]  # of scikit-learn
    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> Any:
        """Simulate a session, and return the distances of its rows to the centres."""
        return self.fit(X, y, **more).transform(X)


def _check_mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping | None):
        raise InvalidParameters(
            "names and values are needed, as in a dict.", field=name
        )
    return value or {}


def weighted_means(whole: PooledRows, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of all rows in each cluster, as an array (k, m).

    Means are NaN for clusters without weight, and for columns of levels.

    Parameters
    ----------
    weights : float64 array of shape (n, k)
        The weight of each row in each cluster.
    """
    is_value = ~np.isnan(whole.X)
    sums = weights.T @ np.where(is_value, whole.X, 0.0)
    counts = weights.T @ is_value
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    means[:, ~whole.numbers] = np.nan
    return means


class CannotCluster(ValueError):
    """Raised for parameters, a layout or tables with which no session can finish.

    Attributes
    ----------
    problem : Problem
        The problem with which a real session would end.
    """

    def __init__(self, detail: str, problem: Problem) -> None:
        super().__init__(detail)
        self.problem = problem

    def __reduce__(self) -> tuple[type[CannotCluster], tuple[str, Problem]]:
        """Return how to pickle the error with both of its arguments."""
        return type(self), (self.args[0], self.problem)


@contextmanager
def as_value_errors(prefix: str = "") -> Iterator[None]:
    """Turn any :class:`CoterieError` raised in the block into :class:`CannotCluster`.

    prefix: the beginning of the message.
    """
    try:
        yield
    except (InvalidParameters, InvalidData) as error:
        raise CannotCluster(prefix + error.detail, error.problem) from None
    except CoterieError as error:  # the detail is clear only with the title
        detail = f"{prefix}{error.problem.title}. {error.detail}"
        raise CannotCluster(detail, error.problem) from None


def check_no_extra_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise TypeError if there are unknown arguments.

    Raises InvalidParameters if sample weights are passed.
    """
    if unknown := sorted(arguments.keys() - {"sample_weight"}):
        raise TypeError(f"There is no argument {unknown[0]!r}.")
    if arguments.get("sample_weight") is not None:
        raise InvalidParameters(
            "all rows have the same weight; omit it.", field="sample_weight"
        )


def check_matrix(table: Any) -> None:
    """Raise InvalidData if a matrix cannot be clustered.

    The messages begin with the words that scikit-learn expects.
    """
    if not isinstance(table, np.ndarray) or table.ndim != 2:
        return
    if np.iscomplexobj(table):
        raise InvalidData(
            "Complex data not supported. Give real and imaginary parts as columns."
        )
    if table.shape[1] == 0:
        raise InvalidData(
            f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 "
            "is required."
        )
    if table.shape[0] == 1:
        raise InvalidData("n_samples = 1, and a session needs at least two rows.")


def convert_to_matrix(tables: Any) -> Any:
    """Convert nested lists or object arrays of numbers to a matrix.

    Other tables are returned unchanged. Raises TypeError or ValueError if an object
    array has objects that are neither text nor numbers.
    """
    if isinstance(tables, list) and tables:
        if not all(isinstance(row, list) and row for row in tables):
            return tables
        is_row = all(isinstance(value, int | float) for row in tables for value in row)
        is_even = len({len(row) for row in tables}) == 1
        return np.asarray(tables, dtype=np.float64) if is_row and is_even else tables
    # Objects that convert themselves to an array, unless they are data frames.
    is_array = hasattr(tables, "__array__") and not isinstance(tables, np.ndarray)
    if is_array and nw.from_native(tables, pass_through=True) is tables:
        tables = np.asarray(tables)
    if not isinstance(tables, np.ndarray) or tables.dtype != object:
        return tables
    has_words = any(isinstance(value, str | bytes) for value in tables.flat)
    return tables if has_words else tables.astype(np.float64)


def single_column_prefix(table: Any) -> str:
    """Return how errors begin for a matrix with a single column; empty for other tables."""
    is_matrix = isinstance(table, np.ndarray) and table.ndim == 2
    return "X has n_features = 1. " if is_matrix and table.shape[1] == 1 else ""

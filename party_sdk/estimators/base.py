"""What all estimators share: parameters of a session, `fit`, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

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
from party_sdk.coordinator.option_parsing import read_runs
from party_sdk.lab.parties import LayoutSpec
from party_sdk.lab.simulated_session import SimulatedSession, Whole, simulate
from party_sdk.results.new_rows import NewRows
from party_sdk.results.results import Result
from party_sdk.tables import IdColumns

_SEEDS = 2**31 - 1
_LARGEST_SEED = 2**53 - 1  # as in terms: a whole number in any language


def labels_new_rows(estimator: Any) -> bool:
    """Return whether new rows get labels; before a session, whether they may.

    Raises GuardRefused with what would: scikit-learn shows it as the cause.
    """
    if estimator.__sklearn_is_fitted__():
        result: Result = estimator.session_.results[0]
        result.check_labels_new_rows()
        return True
    params, _ = estimator.build_params()
    name = estimator.protocol or estimator.usual_protocol
    return catalogue.protocol(name).may_label_new_rows(params)


class FederatedClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Base of the estimators; a subclass says which methods of protocols it stands for.

    Attributes
    ----------
    algorithms : tuple of str
        What protocols call the method; see
        :class:`~clustering_protocols.common.suitability.Method`.
    usual_protocol, usual_layout : what None stands for
    """

    algorithms: ClassVar[tuple[str, ...]]
    usual_protocol: ClassVar[str] = "dc"
    usual_layout: ClassVar[LayoutSpec | None] = None

    # scikit-learn reads the names of parameters off the __init__ of a class: one that
    # takes others, or has other defaults, lists all of them
    def __init__(
        self,
        n_clusters: int | Sequence[int] = 8,
        *,
        protocol: str | None = None,
        layout: LayoutSpec | None = None,
        n_init: int | None = None,
        max_iter: int | None = None,
        params: Mapping[str, Any] | None = None,
        choose: str | None = None,
        id_column: IdColumns = None,
        dictionary: Any = None,
        preparation: Any = None,
        choices: Mapping[str, Any] | None = None,
        allow: Sequence[str] = (),
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.protocol = protocol
        self.layout = layout
        self.n_init = n_init
        self.max_iter = max_iter
        self.params = params
        self.choose = choose
        self.id_column = id_column
        self.dictionary = dictionary
        self.preparation = preparation
        self.choices = choices
        self.allow = allow
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **more: Any) -> Self:
        """Simulate a session.

        Parameters
        ----------
        X : list of tables, or one table
            One table for each party; or one that is dealt out as ``layout`` says. A
            table is a matrix, a table of pandas, polars or pyarrow, or a path. Lists of
            numbers are the rows of one table.
        y : ignored
        **more : none
            Rows of a session count alike: ``sample_weight`` is refused in a sentence.

        Returns
        -------
        self

        Raises
        ------
        CannotCluster
            A ValueError: the sentence says what a session of these parties would end
            with.
        """
        del y
        X = read_rows(X)
        with as_value_errors(describe_width(X)):
            check_no_more(more)
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
                seed=self._seed(),
            )
        self._keep(session)
        return self

    def fit_predict(self, X: Any, y: Any = None, **more: Any) -> Any:
        """Simulate a session; return ``labels_``."""
        return self.fit(X, y, **more).labels_

    @available_if(labels_new_rows)  # type: ignore[untyped-decorator]  # of scikit-learn
    def predict(self, X: Any) -> Any:
        """Label new rows with what the session lets its parties have.

        ``llf`` over split rows does, and ``dc`` with ``params={"predictor": True}``.

        Parameters
        ----------
        X : table, or list of tables
            With all columns of the session: found by name, of a matrix in their order.

        Returns
        -------
        int64 array of shape (n_rows,), or a list of them

        Raises
        ------
        AttributeError
            If nobody could; its cause says what a session needs for it.
        CannotCluster
            If the columns are not those of the session.
        """
        return self._of_tables(X, lambda found: found.labels)

    def __sklearn_tags__(self) -> Tags:
        """Return what scikit-learn asks of an estimator: sparse tables are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether :meth:`fit` has come to its end."""
        return hasattr(self, "session_")

    # What a session is made of

    def build_params(self) -> tuple[Params, Evaluation | None]:
        """Return the session's parameters, and its runs where there are several."""
        protocol = self.protocol or self.usual_protocol
        known = catalogue.protocol(protocol)
        ways = [way for way in known.methods if way.name in self.algorithms]
        if not ways:
            raise InvalidParameters(
                f"{protocol!r} has no such method; those that have are "
                f"{', '.join(sorted(self._protocols()))}.",
                field="protocol",
            )
        said = {
            "n_clusters": self._numbers(),
            **ways[0].params,
            **self._own(known.params),
        }
        values = {
            **known.in_simulations,
            **said,
            **_check_mapping("params", self.params),
        }
        if twice := sorted({*said, "algorithm"} & (self.params or {}).keys()):
            raise InvalidParameters(
                f"{twice[0]!r} is what this estimator stands for, or has an "
                "argument of its own.",
                field="params",
            )
        given, evaluation = read_runs(values, self.choose)
        if evaluation is not None and evaluation.choose == "later":
            raise InvalidParameters(
                "'later' needs a coordinator who chooses; read quality_ instead.",
                field="choose",
            )
        return catalogue.parse_params(protocol, given), evaluation

    def _seed(self) -> int:
        """Return the session's seed: a number as it is given, as commands take it."""
        given = self.random_state
        if isinstance(given, np.random.Generator):
            return int(given.integers(_SEEDS))
        if isinstance(given, int | np.integer) and given >= 0:
            if given > _LARGEST_SEED:
                raise InvalidParameters(
                    f"at most {_LARGEST_SEED}.", field="random_state"
                )
            return int(given)
        return int(check_random_state(given).randint(_SEEDS))

    def _own(self, model: type[Params]) -> dict[str, Any]:
        """Return the parameters that have an argument of their own, where one is given."""
        del model
        said = {"n_init": self.n_init, "max_iter": self.max_iter}
        return {name: value for name, value in said.items() if value is not None}

    def _numbers(self) -> Any:
        """Return the number of clusters, or several, without numpy's types."""
        given = self.n_clusters
        if isinstance(given, range | str):
            return given
        if np.ndim(given) == 0:
            return given.item() if isinstance(given, np.generic) else given
        return np.asarray(given).tolist()

    @classmethod
    def _protocols(cls) -> set[str]:
        return {
            name
            for name, known in catalogue.catalogue().items()
            if any(way.name in cls.algorithms for way in known.methods)
        }

    # What comes of it

    def _keep(self, session: SimulatedSession) -> None:
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
        if whole.named:
            self.feature_names_in_ = np.asarray(whole.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        figures = session.figures
        self.inertia_ = None if figures is None else figures.inertia
        self.n_iter_ = None if figures is None else figures.n_iter

    def _of_tables(self, X: Any, part: Callable[[NewRows], Any]) -> Any:
        """Return a part of what new rows get: of each table, or of the one."""
        check_is_fitted(self)
        X = read_rows(X)
        if isinstance(X, list | tuple):
            return [part(self._predict_rows(table)) for table in X]
        return part(self._predict_rows(X))

    def _predict_rows(self, table: Any) -> NewRows:
        session: SimulatedSession = self.session_
        result: Result = session.results[0]
        table = read_rows(table)
        with as_value_errors():
            if isinstance(table, MatrixSource | SparseSource):
                table = matrix(table)
            if isinstance(table, np.ndarray) or issparse(table):
                self._check_width(table)
                dense = table.toarray() if issparse(table) else table
                table = dense[:, session.whole.order]
            return result.predict(table)

    def _check_width(self, table: Any) -> None:
        """Refuse other columns than those of the session, in scikit-learn's words."""
        wanted = self.n_features_in_
        if table.ndim != 2:
            raise InvalidParameters(
                f"X has shape {table.shape}. Reshape your data: the session clustered "
                f"{wanted} columns."
            )
        if table.shape[1] != wanted:
            raise InvalidParameters(
                f"X has {table.shape[1]} features, but {type(self).__name__} is "
                f"expecting {wanted} features as input: the session clustered {wanted} "
                "columns."
            )


class CentreDistances(FederatedClusterer):
    """Base of the estimators whose clusters lie around centres."""

    def __sklearn_tags__(self) -> Tags:
        """Return what scikit-learn asks of an estimator: this one transforms rows too."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    @available_if(labels_new_rows)  # type: ignore[untyped-decorator]  # of scikit-learn
    def transform(self, X: Any) -> Any:
        """Return the distances of new rows to all centres.

        Parameters
        ----------
        X : table, or list of tables
            As for :meth:`predict`.

        Returns
        -------
        float64 array of shape (n_rows, n_clusters), or a list of them
            In the units in which the session compared rows, mostly standard deviations.

        Raises
        ------
        CannotCluster
            As of :meth:`predict`.
        """
        return self._of_tables(X, lambda found: found.centre_distances)

    @available_if(labels_new_rows)  # type: ignore[untyped-decorator]  # of scikit-learn
    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> Any:
        """Simulate a session; return the distances of its rows to all centres."""
        return self.fit(X, y, **more).transform(X)


def _check_mapping(name: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping | None):
        raise InvalidParameters(
            "names and values are needed, as in a dict.", field=name
        )
    return given or {}


def centres(whole: Whole, weights: FloatArray) -> FloatArray:
    """Return the weighted means of all rows, (k, m); NaN where nothing has a weight.

    Parameters
    ----------
    weights : float64 array of shape (n, k)
        How much each row counts for each cluster.
    """
    known = ~np.isnan(whole.X)
    sums = weights.T @ np.where(known, whole.X, 0.0)
    counts = weights.T @ known
    found = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=found, where=counts > 0)
    found[:, ~whole.numbers] = np.nan
    return found


class CannotCluster(ValueError):
    """Parameters, layout or tables that no session comes to an end with.

    Attributes
    ----------
    problem : Problem
        What a real session would end with.
    """

    def __init__(self, detail: str, problem: Problem) -> None:
        super().__init__(detail)
        self.problem = problem

    def __reduce__(self) -> tuple[type[CannotCluster], tuple[str, Problem]]:
        """Cross the border of a process that tries parameters, with both arguments."""
        return type(self), (self.args[0], self.problem)


@contextmanager
def as_value_errors(before: str = "") -> Iterator[None]:
    """Raise :class:`CannotCluster` for any :class:`CoterieError`, with its sentences.

    before: what is said first.
    """
    try:
        yield
    except (InvalidParameters, InvalidData) as error:
        raise CannotCluster(before + error.detail, error.problem) from None
    except CoterieError as error:  # what other details are about is in the title
        said = f"{before}{error.problem.title}. {error.detail}"
        raise CannotCluster(said, error.problem) from None


def check_no_more(given: Mapping[str, Any]) -> None:
    """Refuse other arguments, weights of rows in a sentence of their own.

    Raises InvalidParameters, TypeError.
    """
    if others := sorted(given.keys() - {"sample_weight"}):
        raise TypeError(f"There is no argument {others[0]!r}.")
    if given.get("sample_weight") is not None:
        raise InvalidParameters(
            "rows of a session count alike. Leave it out.", field="sample_weight"
        )


def check_matrix(table: Any) -> None:
    """Refuse a matrix that no session is of, in the words of scikit-learn.

    Raises InvalidData.
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
        raise InvalidData("n_samples = 1, and a session is of two rows at least.")


def read_rows(tables: Any) -> Any:
    """Return numbers in Python's lists or objects as the one matrix that they are.

    Others are returned as they are. Raises TypeError for objects that are no numbers.
    """
    if isinstance(tables, list) and tables:
        return _read_lists(tables)
    if _is_array_alike(tables):
        tables = np.asarray(tables)
    if not isinstance(tables, np.ndarray) or tables.dtype != object:
        return tables
    has_words = any(isinstance(value, str | bytes) for value in tables.flat)
    return tables if has_words else tables.astype(np.float64)


def _is_array_alike(table: Any) -> bool:
    """Return whether it says itself which array it is, and is no table or matrix."""
    if isinstance(table, np.ndarray) or not hasattr(table, "__array__"):
        return False
    return nw.from_native(table, pass_through=True) is table


def _read_lists(tables: list[Any]) -> Any:
    if not all(isinstance(row, list) and row for row in tables):
        return tables
    is_row = all(isinstance(value, int | float) for row in tables for value in row)
    is_even = len({len(row) for row in tables}) == 1
    return np.asarray(tables, dtype=np.float64) if is_row and is_even else tables


def describe_width(table: Any) -> str:
    """Return what to say first of a matrix that has a single column."""
    is_matrix = isinstance(table, np.ndarray) and table.ndim == 2
    return "X has n_features = 1. " if is_matrix and table.shape[1] == 1 else ""

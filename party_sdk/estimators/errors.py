"""What an estimator raises: errors of the house as scikit-learn's callers expect them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
)


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

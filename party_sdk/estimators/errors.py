"""What an estimator raises: errors of the house as scikit-learn's callers expect them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
def as_value_errors() -> Iterator[None]:
    """Raise :class:`CannotCluster` for any :class:`CoterieError`, with its sentences."""
    try:
        yield
    except (InvalidParameters, InvalidData) as error:
        raise CannotCluster(error.detail, error.problem) from None
    except CoterieError as error:  # what other details are about is in the title
        said = f"{error.problem.title}. {error.detail}"
        raise CannotCluster(said, error.problem) from None

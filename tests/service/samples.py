"""The session of most tests of the service, and what its answers say."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import httpx
import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from support.in_process import Api

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.terms.terms import Layout

StartApi = Callable[..., "AbstractContextManager[Api]"]

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)
A, B = LAYOUT.names


def problem_of(response: httpx.Response) -> Problem:
    assert response.headers["content-type"] == "application/problem+json"
    problem = Problem.of_slug(response.json()["type"])
    assert response.status_code == problem.status
    return problem


def figures(api: Api) -> dict[tuple[str, ...], float]:
    """Return all samples, by name and values of labels."""
    api.clock.forward(1)  # they are worked out once a second
    response = api.send("GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }

"""The data of most tests of the service, and functions that read its responses."""

import httpx
import numpy as np
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families
from support.in_process import Api

from analyst_service.credentials import Role
from analyst_service.settings import Settings
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from party_sdk.cli import main

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)
A, B = LAYOUT.names


class Cast:
    """A session in its first round, and the secrets of everybody who may send a request."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.session = api.open(Dummy(), PARTS).join()
        other = api.open(Dummy(), PARTS).join()
        self.secrets: dict[str, str | None] = {
            "nobody": None,
            "garbage": "ck_garbage",
            "member": self.session.tokens[A],
            "stranger": other.tokens[A],
            "owner": self.session.key,
            "another coordinator": api.key(),
            "administrator": api.key(Role.ADMINISTRATOR),
        }


def environment_of(place: Settings) -> dict[str, str]:
    """Return the variables with which a program uses an analyst's folder and database."""
    return {
        "COTERIE_DATA_DIR": str(place.data_dir),
        "COTERIE_DATABASE_URL": place.database,
    }


def command(place: Settings, *words: object, **variables: object) -> Result:
    """Run an administrator's command on an analyst's folder and database."""
    given = {name: str(value) for name, value in variables.items()}
    environment = environment_of(place) | given
    return CliRunner().invoke(main, [str(word) for word in words], env=environment)


def problem_of(response: httpx.Response) -> Problem:
    assert response.headers["content-type"] == "application/problem+json"
    problem = Problem.from_slug(response.json()["type"])
    assert response.status_code == problem.status
    return problem


def figures(api: Api) -> dict[tuple[str, ...], float]:
    """Return the samples of /metrics, by name and label values."""
    api.clock.forward(1)  # they are computed at most once a second
    response = api.send("GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }

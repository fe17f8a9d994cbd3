"""`import coterie` offers what programs use, and imports it when it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import coterie
from clustering_protocols import catalogue

# Anyone who takes a name away, or adds one, says so here: programs import them.
OFFERED = {
    *("Coordinator", "Party", "Policy", "Result"),
    *("About", "Deadlines", "Guards", "Layout", "Retention", "Slot"),
    *("Schema", "Preparation", "Evaluation", "Release"),
    *("FederatedKMeans", "FederatedFuzzyCMeans", "CannotCluster"),
    *("FederatedSpectralClustering", "FederatedCoClustering"),
    *("simulate", "SimulatedSession", "local_session", "LocalSession"),
    *("DataCollaboration", "Anchor"),
    *("LosslessFederated", "CoClustering", "Dummy"),
    *("OmniFC", "ProductQuantisation", "Privacy"),
    "datasets",
}


def test_the_names_are_those_of_the_list() -> None:
    assert set(coterie.__all__) == OFFERED


@pytest.mark.parametrize("name", sorted(OFFERED))
def test_each_name_is_there(name: str) -> None:
    assert getattr(coterie, name).__name__.removeprefix("coterie.") == name


def test_the_parameters_of_every_protocol_are_there() -> None:
    for known in catalogue.catalogue().values():
        assert getattr(coterie, known.params.__name__) is known.params


def test_what_is_not_offered_is_no_attribute() -> None:
    for name in ("PROTOCOL", "Nonsense", "__nonsense__"):
        with pytest.raises(AttributeError, match=name):
            getattr(coterie, name)


def imported(code: str) -> set[str]:
    shown = f"import sys, json; {code}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_importing_it_imports_nothing_else() -> None:
    heavy = {"numpy", "pydantic", "httpx", "pyarrow", "sklearn", "party_sdk"}
    assert not heavy & imported("import coterie")


def test_naming_parameters_needs_no_client_and_no_mathematics() -> None:
    found = imported("from coterie import DataCollaboration, Layout, Policy")
    assert "pydantic" in found
    assert not {"httpx", "pyarrow", "sklearn", "scipy", "numba"} & found

"""The manifests under docker/kubernetes/: what they name is what the service has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from analyst_service.app import create_app
from analyst_service.cli import draining
from analyst_service.settings import Settings

DOCKER = Path(__file__).parents[2] / "docker"
FILE = DOCKER / "kubernetes" / "analyst.yaml"
IMAGE = (DOCKER / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]["analyst"]


@pytest.fixture(scope="module")
def things() -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in yaml.safe_load_all(FILE.read_text())}


@pytest.fixture(scope="module")
def pod(things: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = things["Deployment"]["spec"]["template"]["spec"]
    return found


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["initContainers"], *pod["containers"]]


def test_the_parts_find_each_other(things: dict[str, dict[str, Any]]) -> None:
    assert things.keys() == {"Deployment", "Service", "PodDisruptionBudget"}
    labels = {"app": "coterie-analyst"}
    deployment = things["Deployment"]["spec"]
    assert deployment["template"]["metadata"]["labels"] == labels
    assert deployment["selector"]["matchLabels"] == labels
    assert things["Service"]["spec"]["selector"] == labels
    budget = things["PodDisruptionBudget"]["spec"]
    assert budget["selector"]["matchLabels"] == labels
    assert 0 < budget["minAvailable"] < deployment["replicas"]


def test_ports_and_probes_are_those_of_the_image_and_the_service(
    things: dict[str, dict[str, Any]], pod: dict[str, Any], tmp_path: Path
) -> None:
    [analyst] = pod["containers"]
    [port] = analyst["ports"]
    assert f"EXPOSE {port['containerPort']}\n" in IMAGE
    assert f'"--port", "{port["containerPort"]}"' in IMAGE
    [offered] = things["Service"]["spec"]["ports"]
    assert offered["targetPort"] == port["name"]
    paths = create_app(Settings(data_dir=tmp_path)).openapi()["paths"]
    for probe, path in {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }.items():
        assert analyst[probe]["httpGet"] == {"path": path, "port": port["name"]}
        assert path in paths


def test_what_is_set_is_a_setting_and_every_secret_is_a_reference(
    pod: dict[str, Any],
) -> None:
    for container in containers(pod):
        set_here = {each["name"]: each for each in container["env"]}
        own = {name for name in set_here if name.startswith("COTERIE_")}
        fields = {f"COTERIE_{name.upper()}" for name in Settings.model_fields}
        assert own <= fields
        assert all(name.startswith(("COTERIE_", "AWS_")) for name in set_here)
        for name in ("COTERIE_DATABASE_URL", "AWS_SECRET_ACCESS_KEY"):
            assert set_here[name].keys() == {"name", "valueFrom"}
        values = {
            name.removeprefix("COTERIE_").lower(): set_here[name]["value"]
            for name in own
            if "value" in set_here[name]
        }
        settings = Settings.model_validate(values)
        assert settings.identity_path.parent == Path("/identity")


def test_what_a_container_needs_from_secrets_is_what_the_head_says_to_make(
    pod: dict[str, Any],
) -> None:
    head = FILE.read_text().partition("apiVersion")[0]
    made = set(re.findall(r"--from-(?:literal|file)=([a-z.-]+)", head))
    asked = {
        each["valueFrom"]["secretKeyRef"]["key"]
        for container in containers(pod)
        for each in container["env"]
        if "valueFrom" in each
    }
    [identity] = [v for v in pod["volumes"] if v["name"] == "identity"]
    asked |= {item["key"] for item in identity["secret"]["items"]}
    assert made == asked


def test_it_has_the_rights_that_compose_gives_and_no_more(pod: dict[str, Any]) -> None:
    assert COMPOSE["read_only"]
    assert COMPOSE["cap_drop"] == ["ALL"]
    user = pod["securityContext"]["runAsUser"]
    assert f"USER {user}\n" in IMAGE
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    for container in containers(pod):
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == COMPOSE["image"]
        written = {m["mountPath"] for m in container["volumeMounts"]}
        assert {"/data", "/tmp"} <= written
        names = {m["name"] for m in container["volumeMounts"]}
        assert names <= {volume["name"] for volume in pod["volumes"]}


def test_there_is_time_enough_to_end(pod: dict[str, Any]) -> None:
    [analyst] = pod["containers"]
    words = analyst["lifecycle"]["preStop"]["exec"]["command"]
    assert words[0] == "sleep"
    [drain] = [
        float(each["value"])
        for each in analyst["env"]
        if each["name"] == "COTERIE_DRAIN_SECONDS"
    ]
    needed = float(words[1]) + drain + draining.LAST_SECONDS
    assert needed + 5 <= pod["terminationGracePeriodSeconds"]

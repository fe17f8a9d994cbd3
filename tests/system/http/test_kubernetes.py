"""The manifests under docker/kubernetes/ fit the image, service and compose file."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from analyst_service.app import create_app
from analyst_service.cli import shutdown
from analyst_service.secret_files import CREDENTIAL_FILES
from analyst_service.settings import (
    SECRET_SETTINGS,
    Settings,
    file_variable_name,
    variable_name,
)

DOCKER = Path(__file__).parents[3] / "docker"
FILE = DOCKER / "kubernetes" / "analyst.yaml"
NETWORK = FILE.with_name("network.yaml")
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


def test_the_parts_find_each_other_the_image_and_the_service(
    things: dict[str, dict[str, Any]], pod: dict[str, Any], tmp_path: Path
) -> None:
    assert things.keys() == {"Deployment", "Service", "PodDisruptionBudget"}
    labels = {"app": "coterie-analyst"}
    deployment, service = (things[kind]["spec"] for kind in ("Deployment", "Service"))
    budget = things["PodDisruptionBudget"]["spec"]
    assert deployment["template"]["metadata"]["labels"] == labels
    assert deployment["selector"]["matchLabels"] == service["selector"] == labels
    assert budget["selector"]["matchLabels"] == labels
    assert 0 < budget["minAvailable"] < deployment["replicas"]
    [analyst] = pod["containers"]
    [port] = analyst["ports"]
    assert f"EXPOSE {port['containerPort']}\n" in IMAGE
    assert f'"--port", "{port["containerPort"]}"' in IMAGE
    assert [offered["targetPort"] for offered in service["ports"]] == [port["name"]]
    paths = create_app(Settings(data_dir=tmp_path)).openapi()["paths"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        path = "/readyz" if probe == "readinessProbe" else "/healthz"
        assert analyst[probe]["httpGet"] == {"path": path, "port": port["name"]}
        assert path in paths


def test_variables_are_settings_and_secrets_are_files(pod: dict[str, Any]) -> None:
    [volume] = [each for each in pod["volumes"] if "secret" in each]
    for container in containers(pod):
        values = {each["name"]: each["value"] for each in container["env"]}
        own = {name for name in values if name.startswith("COTERIE_")}
        fields = {variable_name(name): name for name in Settings.model_fields}
        files = set(map(file_variable_name, SECRET_SETTINGS))
        assert own <= fields.keys() | files
        assert all(name.startswith(("COTERIE_", "AWS_")) for name in values)
        credentials = values.keys() & set(CREDENTIAL_FILES)
        named = (own & files) | credentials | {"COTERIE_IDENTITY_FILE"}
        [mount] = [m for m in container["volumeMounts"] if m["name"] == volume["name"]]
        assert mount["readOnly"]
        mounted = {
            f"{mount['mountPath']}/{item['path']}": item["key"]
            for item in volume["secret"]["items"]
        }
        assert {values[name] for name in named} == mounted.keys()
        set_here = {fields[name]: values[name] for name in own & fields.keys()}
        hidden = {*SECRET_SETTINGS} - {"blob_store"}
        assert hidden.isdisjoint(set_here)
        Settings.model_validate(set_here)
    # the head of the file creates exactly these
    head = FILE.read_text().partition("apiVersion")[0]
    made = set(re.findall(r"--from-(?:literal|file)=([a-z.-]+)", head))
    assert made == {item["key"] for item in volume["secret"]["items"]}
    assert volume["secret"]["defaultMode"] == 0o440


def test_it_has_the_rights_that_compose_gives_and_no_more(pod: dict[str, Any]) -> None:
    assert COMPOSE["read_only"]
    assert COMPOSE["cap_drop"] == ["ALL"]
    user = pod["securityContext"]["runAsUser"]
    assert f"USER {user}\n" in IMAGE
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(pod):
        rights = container["securityContext"]
        assert "seccompProfile" not in rights
        assert container["resources"]["limits"].keys() >= {"memory"}
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == COMPOSE["image"]
        written = {m["mountPath"] for m in container["volumeMounts"]}
        assert {"/data", "/tmp"} <= written
        names = {m["name"] for m in container["volumeMounts"]}
        assert names <= {volume["name"] for volume in pod["volumes"]}


def test_the_network_lets_in_and_out_what_is_needed_and_no_more(
    things: dict[str, dict[str, Any]], pod: dict[str, Any]
) -> None:
    policy = yaml.safe_load(NETWORK.read_text())
    assert policy["kind"] == "NetworkPolicy"
    rules = policy["spec"]
    assert rules["policyTypes"] == ["Ingress", "Egress"]
    labels = things["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert rules["podSelector"]["matchLabels"] == labels
    [analyst] = pod["containers"]
    [entrance] = rules["ingress"]
    assert entrance["from"], "nobody else than is named"
    assert entrance["ports"] == [
        {"protocol": "TCP", "port": analyst["ports"][0]["name"]}
    ]
    out = {
        (p["protocol"], p["port"]) for each in rules["egress"] for p in each["ports"]
    }
    [store] = [e["value"] for e in analyst["env"] if e["name"] == "AWS_ENDPOINT_URL"]
    assert urlsplit(store).scheme == "https"
    # where the metadata service of a cloud listens, port 80, is none of them
    assert out == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 5432)}


def test_there_is_time_enough_to_end(pod: dict[str, Any]) -> None:
    [analyst] = pod["containers"]
    words = analyst["lifecycle"]["preStop"]["exec"]["command"]
    assert words[0] == "sleep"
    [drain] = [
        float(each["value"])
        for each in analyst["env"]
        if each["name"] == "COTERIE_DRAIN_SECONDS"
    ]
    needed = float(words[1]) + drain + shutdown.LAST_SECONDS
    assert needed + 5 <= pod["terminationGracePeriodSeconds"]

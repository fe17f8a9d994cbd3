"""Prometheus beside the analyst: the profile of the compose file, and the alerts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.in_process import Api
from support.needs import PROMTOOL

from .test_deployment import DOCKER, compose, program

RULES = DOCKER / "alerts.yml"
STEPS = 'coterie_step_seconds_count{job="coterie",instance="a",outcome="%s"}'


def promtool(*words: object) -> None:
    done = subprocess.run(
        [program(PROMTOOL), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_is_there_for_who_asks_and_for_this_machine_alone() -> None:
    done = subprocess.run(
        [
            *compose(),
            "-f",
            str(DOCKER / "compose.yaml"),
            "--profile",
            "watch",
            "config",
        ],
        env={"PATH": "/usr/bin:/bin", "COTERIE_DATABASE_PASSWORD": "secret1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = yaml.safe_load(done.stdout)["services"]["prometheus"]
    assert "127.0.0.1" in str(found["ports"])
    assert "inside" in found["networks"]
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    for name in ("prometheus.yml", "alerts.yml"):
        assert str(DOCKER / name) in str(found["volumes"])
        assert f"/etc/prometheus/{name}" in str(found["volumes"])


def test_configuration_and_rules_are_what_prometheus_takes() -> None:
    promtool("check", "config", DOCKER / "prometheus.yml")
    promtool("check", "rules", RULES)


def test_every_figure_that_an_alert_reads_is_told(api: Api) -> None:
    told = {
        (sample.name, sample.labels.get("outcome"))
        for family in text_string_to_metric_families(api.client.get("/metrics").text)
        for sample in family.samples
    }
    assert ("coterie_ready", None) in told
    assert ("coterie_free_bytes", None) in told
    for outcome in ("Failed", "Crashed"):
        assert ("coterie_step_seconds_count", outcome) in told
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    for rule in rules:
        assert any(name in rule["expr"] for name, _ in told)


def test_who_is_not_ready_tells_figures_and_that(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.service.blobs, "free_bytes", lambda: 0)
    api.clock.forward(60)
    assert "coterie_ready 0.0" in api.client.get("/metrics").text
    monkeypatch.undo()
    api.clock.forward(60)
    assert "coterie_ready 1.0" in api.client.get("/metrics").text


CASES: dict[str, tuple[dict[str, str], str, str]] = {
    "an analyst that answers nothing": (
        {'up{job="coterie",instance="a"}': "1x5 0x30"},
        "CoterieNotReady",
        "9m",
    ),
    "one that says so": (
        {
            'up{job="coterie",instance="a"}': "1x40",
            'coterie_ready{job="coterie",instance="a"}': "1x5 0x30",
        },
        "CoterieNotReady",
        "9m",
    ),
    "little room": (
        {'coterie_free_bytes{job="coterie",instance="a"}': "2e9x5 9e8x30"},
        "CoterieSpaceLow",
        "20m",
    ),
    "a first step that fails": (
        {STEPS % "Failed": "0x5 1x30", STEPS % "Crashed": "0x40"},
        "CoterieStepsFail",
        "8m",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_alert_is_raised_when_it_should_and_not_before(
    case: str, tmp_path: Path
) -> None:
    given, alert, later = CASES[case]
    rule = next(
        rule
        for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
        if rule["alert"] == alert
    )
    written: dict[str, Any] = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in given.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                        "eval_time": time,
                        "exp_samples": [{"value": 1, "labels": "{}"}] * raised,
                    }
                    for time, raised in (("5m", 0), (later, 1))
                ],
            }
        ],
    }
    assert rule["annotations"]["description"]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump(written))
    promtool("test", "rules", file)

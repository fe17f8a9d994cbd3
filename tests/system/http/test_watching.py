"""Prometheus beside the analyst: the profile of the compose file, and the alerts."""

import re
import subprocess
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.in_process import in_process
from support.needs import PROMTOOL
from support.tls import certificate

from clustering_protocols.wire.states import OVER, SessionState

from .test_deployment import DOCKER, program

RULES = DOCKER / "alerts.yml"
WAITS = 'coterie_longest_wait_seconds{job="coterie",instance="a",state="%s"}'
REQUESTS = 'coterie_requests_total{job="coterie",instance="a",method="GET",route="%s",status="%s"}'
STEPS = 'coterie_step_seconds_count{job="coterie",instance="a",outcome="%s"}'


def promtool(*words: object) -> None:
    done = subprocess.run(
        [program(PROMTOOL), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_configuration_and_rules_are_what_prometheus_takes() -> None:
    promtool("check", "config", DOCKER / "prometheus.yml")
    promtool("check", "rules", RULES)


def test_every_figure_that_an_alert_reads_is_told(tmp_path: Path) -> None:
    certificate(tmp_path)
    with in_process(tmp_path / "analyst", certificate_file=tmp_path / "tls.pem") as api:
        api.client.get("/healthz")  # requests are figures once there was one
        text = api.client.get("/metrics").text
    told = {
        (sample.name, sample.labels.get("outcome"))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert ("coterie_ready", None) in told
    assert ("coterie_free_bytes", None) in told
    for outcome in ("Failed", "Crashed"):
        assert ("coterie_step_seconds_count", outcome) in told
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    assert {alert for _, alert, _ in CASES.values()} == {r["alert"] for r in rules}
    page = (DOCKER.parent / "docs" / "runbook.md").read_text()
    assert all(f"`{rule['alert']}`" in page for rule in rules)
    names = {name for name, _ in told} | {"coterie"}  # the job
    for rule in rules:
        assert rule["annotations"]["description"]
        assert set(re.findall(r"coterie\w*", rule["expr"])) <= names, rule["alert"]
    waits = {s for s in SessionState if s not in OVER}
    assert all(
        f'coterie_longest_wait_seconds{{state="{s}"}} 0.0' in text for s in waits
    )


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
    "all analysts are gone, and their series with them": (
        {'up{job="coterie",instance="a"}': "1x5 stale"},
        "CoterieNotReady",
        "9m",
    ),
    "a certificate about to end": (
        {'coterie_certificate_days{job="coterie",instance="a"}': "20x5 13x90"},
        "CoterieCertificateEnds",
        "70m",
    ),
    "no backup for two days": (
        # made at the start, when time() is 0
        {'coterie_last_backup_timestamp_seconds{job="coterie",instance="a"}': "0x3000"},
        "CoterieBackupOld",
        "50h",
    ),
    "answers of 5xx": (
        {
            REQUESTS % ("/v1/sessions", "200"): "0+95x90",
            REQUESTS % ("/v1/sessions", "503"): "0x5 0+10x85",
        },
        "CoterieServerErrors",
        "30m",
    ),
    "a first notice that is given up": (
        {'coterie_notices_total{job="coterie",outcome="given-up"}': "0x5 1x30"},
        "CoterieNoticesGivenUp",
        "8m",
    ),
    "a session that is awaited for long": (
        {WAITS % "collecting": "86000x5 86500x30", WAITS % "recruiting": "1e9x40"},
        "CoterieSessionWaits",
        "8m",
    ),
    "a step that does not end": (
        {WAITS % "stepping": "3000x5 3700x30"},
        "CoterieStepsWait",
        "8m",
    ),
    "a first step that fails": (
        {STEPS % "Failed": "0x5 1x30", STEPS % "Crashed": "0x40"},
        "CoterieStepsFail",
        "8m",
    ),
}


def test_each_alert_is_raised_when_it_should_and_not_before(tmp_path: Path) -> None:
    tests = [
        {
            "name": case,
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
        for case, (given, alert, later) in CASES.items()
    ]
    head = {"rule_files": [str(RULES)], "evaluation_interval": "1m"}
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({**head, "tests": tests}))
    promtool("test", "rules", file)

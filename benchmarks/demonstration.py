"""What `make demo` runs: the whole product on this machine, in processes of its own.

An analyst on SQLite and four parties (two row groups × two column groups) speak HTTP to
each other, each party knowing its own file only. The demo knows all files and the
parties' entropy, so that it can compare with pooled clustering and with a simulation.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import httpx
import numpy as np
import pyarrow as pa
from pyarrow import csv
from sklearn.datasets import load_breast_cancer

from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.contract import Params
from clustering_protocols.numerics import scores
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.terms import Layout
from party_sdk.cli.terminal.progress import Heartbeat
from party_sdk.home.files import private_folder, write_private
from party_sdk.lab import AgreedFields, Deal, SimulatedSession, deal, play
from party_sdk.tables import read_column

SEED = 1
# of chance, as of the parties' entropy: every run prints the same numbers
_ANALYST = Institution.derive(
    simulation.entropies(SEED, "demo", [])[simulation.COORDINATOR]
)
LAYOUT = Layout.lattice(2, 2)
_START_SECONDS = 60
_COTERIE = [sys.executable, "-P", "-m", "party_sdk.cli"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The data of the demo: features, classes and how they are split."""

    classes: IntArray
    held: Deal
    folder: Path


def show(out: Path, beat: Heartbeat, *, as_json: bool) -> None:
    """Run the demo; print the scores and where the reports are."""
    begin = time.monotonic()
    contest = _prepare(out.resolve())
    beat.say(f"four parties' files are in {contest.folder / 'data'}")
    with _analyst(contest.folder, beat) as environment:
        methods = {
            "dc, paper's text": _run(
                contest, "paper-text", _paper_text(contest), environment, beat
            ),
            "dc, defaults": _run(contest, "defaults", _defaults(), environment, beat),
        }
        reports = _report(contest, "defaults", environment, beat)
    scale = DemoClasses(classes=contest.classes, parts=contest.held.parts)
    pooled = methods["dc, defaults"].whole.pooled
    scores = {
        LOCAL: scale.alone(_defaults(), pooled),
        **{
            name: scale.of(each.whole.labels, each.whole.pooled)
            for name, each in methods.items()
        },
        POOLED: scale.of(pooled, pooled),
    }
    seconds = time.monotonic() - begin
    if as_json:
        click.echo(json.dumps(_document(scores, contest, reports, seconds)))
        return
    _print(scores, contest, reports, seconds)


def _prepare(folder: Path) -> Experiment:
    bunch = load_breast_cancer()
    X, classes = bunch.data, bunch.target
    names = [name.replace(" ", "_") for name in bunch.feature_names]
    held = deal(X, names, AgreedFields(), LAYOUT, SEED)
    for left in ("analyst", "homes", "labels"):
        shutil.rmtree(private_folder(folder) / left, ignore_errors=True)
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for slot, source in held.parts.data.items():
        columns = dict(zip(source.columns, matrix(source).T, strict=True))
        table = pa.table({"patient": list(source.ids or ()), **columns})
        csv.write_csv(table, data / f"{slot}.csv")
    return Experiment(held=held, classes=classes, folder=folder)


def _defaults() -> Params:
    return catalogue.parse_params("dc", {"n_clusters": 2})


def _paper_text(contest: Experiment) -> Params:
    return catalogue.parse_params(
        "dc",
        {
            "n_clusters": 2,
            "scaling": "local",
            "target": "orthonormal",
            "anchor": {"kind": "uniform", "n_rows": len(contest.classes)},
        },
    )


# The processes


@contextmanager
def _analyst(folder: Path, beat: Heartbeat) -> Iterator[Mapping[str, str]]:
    """Run an analyst; yield the environment that its callers need."""
    beat.now("an analyst starts")
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    home = private_folder(folder / "analyst")
    write_private(home / "identity.json", _ANALYST.to_bytes())
    # an analyst of this machine may have settings of its own here
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COTERIE_")}
    environment |= {"COTERIE_DATA_DIR": str(home)}
    _call(["migrate"], environment)
    key = _call(["key", "create", "--label", "demo"], environment).strip()
    with (folder / "analyst.log").open("wb") as log:
        process = subprocess.Popen(
            [*_COTERIE, "serve", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(url, process, folder)
        beat.say(f"an analyst on SQLite listens at {url}")
        yield environment | {"COTERIE_URL": url, "COTERIE_KEY": key}
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(f"{url}/v1/protocols", timeout=5)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    log = folder / "analyst.log"
    raise Unavailable("The analyst did not start.", remedy=f"Read its log: {log}")


def _run(
    contest: Experiment,
    name: str,
    params: Params,
    environment: Mapping[str, str],
    beat: Heartbeat,
) -> SimulatedSession:
    """Run a session over HTTP and in simulation; the labels must be the same bits."""
    session = name  # fixed, as is the entropy: every run prints the same numbers
    keys = simulation.entropies(SEED, session, LAYOUT.names)
    home = private_folder(contest.folder / "homes" / session)
    doing = f"{name}: a coordinator opens a session, four parties join and answer"
    beat.now(doing, _log(home, LAYOUT.names[0]))
    for role, entropy in keys.items():
        (home / f"{role}.entropy").write_text(entropy.hex())
    words = ["session", "--home", str(home), "create", session, "--id", session]
    words += [
        "--seed",
        str(SEED),
        "--row-groups",
        "2",
        "--column-groups",
        "2",
        "--json",
    ]
    words += ["--entropy-file", str(home / f"{simulation.COORDINATOR}.entropy")]
    words += [
        f"--param={key}={json.dumps(value)}"
        for key, value in params.model_dump(mode="json").items()
    ]
    opened = json.loads(_call(words, environment))
    labels = private_folder(contest.folder / "labels" / name)
    parties = {
        slot: _start_party(contest, home, slot, invitation, labels, opened["risks"])
        for slot, invitation in opened["invitations"].items()
    }
    for slot, process in parties.items():
        if process.wait():
            log = _log(home, slot)
            said = _last_line(log.read_text())
            raise Unavailable(
                f"Party {slot} ended early: {said}", remedy=f"Read its log: {log}"
            )
        beat.say(f"{name}: {slot} has its labels")
    beat.now(f"{name}: the same in simulation, and on the pooled data")
    played = play(contest.held, params, SEED, session=session, analyst=_ANALYST.key)
    _check_same(played, labels)
    return played


def _start_party(
    contest: Experiment,
    home: Path,
    slot: str,
    invitation: str,
    labels: Path,
    risks: list[str],
) -> subprocess.Popen[bytes]:
    words = [*_COTERIE, "party", "run", invitation, "--home", str(home)]
    words += ["--data", str(contest.folder / "data" / f"{slot}.csv")]
    words += ["--id-column", "patient", "--labels", str(labels / f"{slot}.csv")]
    words += ["--entropy-file", str(home / f"{slot}.entropy"), "--json"]
    words += [word for code in risks for word in ("--accept-risk", code)]
    words += ["--guard", "least_known=0"]  # all of them are made up here
    with _log(home, slot).open("wb") as log:
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log)


def _log(home: Path, slot: str) -> Path:
    """Return where a party's progress is written."""
    return home / f"{slot}.log"


def _check_same(played: SimulatedSession, labels: Path) -> None:
    for slot, result in zip(played.layout.names, played.results, strict=True):
        written = np.array(read_column(labels / f"{slot}.csv", "label"), dtype=np.int64)
        if not np.array_equal(written, result.labels):
            raise Unavailable(
                f"The labels of {slot} differ from the simulation's.",
                remedy="This is a defect, or a failing machine: run the demo again.",
            )


def _call(words: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [*_COTERIE, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unavailable(
            f"'coterie {words[0]}' ended early: {_last_line(done.stderr)}",
            remedy=f"Run 'coterie {words[0]} --help': it says what the command needs.",
        )
    return done.stdout


def _last_line(text: str) -> str:
    """Return where the reason stands, in an error of a command and in a traceback."""
    return (text.strip().splitlines() or ["it said nothing"])[-1].strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# What there is to look at


def _report(
    contest: Experiment, name: str, environment: Mapping[str, str], beat: Heartbeat
) -> dict[str, Path]:
    """Write the coordinator's report of a session, and that of one party."""
    beat.now("reports are written")
    home, slot = contest.folder / "homes" / name, LAYOUT.names[0]
    paths = {
        "the coordinator": contest.folder / "report.html",
        slot: contest.folder / f"report-{slot}.html",
    }
    page = ["--html", str(paths["the coordinator"]), "--force"]
    _call(["session", "--home", str(home), "report", name, *page], environment)
    page = ["--html", str(paths[slot]), "--force", "--home", str(home)]
    page += ["--data", str(contest.folder / "data" / f"{slot}.csv")]
    page += ["--id-column", "patient"]
    _call(["party", "report", name, slot, *page], environment)
    return paths


def _print(
    scores: Scores, contest: Experiment, reports: Mapping[str, Path], seconds: float
) -> None:
    for line in table_lines(scores):
        click.echo(line)
    click.echo("")
    click.echo("The labels over HTTP equal those of the simulation, bit for bit.")
    click.echo(f"labels: {contest.folder / 'labels'}")
    click.echo(f"{seconds:.0f} s")
    click.echo("Open in a browser:")
    for whose, path in reports.items():
        click.echo(f"  the report of {whose}: {path}")


def _document(
    scores: Scores, contest: Experiment, reports: Mapping[str, Path], seconds: float
) -> dict[str, Any]:
    return {
        "scores": {
            method: {name: vars(score) for name, score in row.items()}
            for method, row in scores.items()
        },
        "labels": str(contest.folder / "labels"),
        "reports": {whose: str(path) for whose, path in reports.items()},
        "seconds": round(seconds, 1),
    }


LOCAL = "each party alone"
POOLED = "pooled data"
OVERALL = "overall"

_FIDELITY = (
    "Fidelity: agreement with the same k-means on the pooled data (adjusted Rand index).",
    "1.000 means that nothing was lost by not pooling; a party alone finds other clusters.",
)
_CLASSES = (
    "True classes: agreement with benign and malignant, which no method was told.",
    "It judges k-means, not the federation: at fidelity 1 it is that of pooled data.",
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Agreement with the classes, and with pooled clustering."""

    ari: float
    fidelity: float


Scores = Mapping[str, Mapping[str, Score]]


@dataclass(frozen=True, kw_only=True)
class DemoClasses:
    """Classes, and how the rows lie with the parties."""

    classes: IntArray
    parts: simulation.Split

    def of(self, labels: IntArray, pooled: IntArray) -> dict[str, Score]:
        """Return the scores of each party's rows, and of all rows."""
        slots = self.parts.layout.slots
        rows = {slot.name: self.parts.rows[slot.row] for slot in slots}
        everybody = np.arange(len(labels))
        return {
            name: self._score(chosen, labels[chosen], pooled)
            for name, chosen in {**rows, OVERALL: everybody}.items()
        }

    def alone(self, params: Params, pooled: IntArray) -> dict[str, Score]:
        """Return the scores of what each party finds alone; overall is their mean."""
        scores: dict[str, Score] = {}
        known = catalogue.protocol_of(params)
        for slot in self.parts.layout.slots:
            own: FloatArray = matrix(self.parts.data[slot.name])
            labels = known.reference().cluster_pooled(params, own, None)
            scores[slot.name] = self._score(self.parts.rows[slot.row], labels, pooled)
        each = list(scores.values())
        mean = Score(
            ari=float(np.mean([score.ari for score in each])),
            fidelity=float(np.mean([score.fidelity for score in each])),
        )
        return {**scores, OVERALL: mean}

    def _score(self, rows: IntArray, labels: IntArray, pooled: IntArray) -> Score:
        return Score(
            ari=scores.adjusted_rand(self.classes[rows], labels),
            fidelity=simulation.fidelity(pooled[rows], labels),
        )


def table_lines(scores: Scores) -> Iterator[str]:
    """Yield both tables, each below a sentence that says what it is of."""
    yield from _FIDELITY
    yield from _table({m: row for m, row in scores.items() if m != POOLED}, "fidelity")
    yield ""
    yield from _CLASSES
    yield from _table(scores, "ari")


def _table(scores: Scores, what: str) -> Iterator[str]:
    names = list(next(iter(scores.values())))
    yield " " * 20 + "".join(f"{name:>9}" for name in names)
    for method, row in scores.items():
        cells = "".join(f"{getattr(row[name], what):9.3f}" for name in names)
        yield f"  {method:18}{cells}"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("coterie-demo"),
    show_default=True,
    help="Folder to write data, labels and logs to.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(out: Path, *, as_json: bool) -> None:
    """Run an analyst and four parties on this machine.

    The data are the breast cancer measurements that come with scikit-learn: 569 people,
    30 features, two classes. Two parties hold 15 features of one half of the people,
    two hold the same features of the other half. The labels are compared with those of
    clustering the pooled data, and the reports of the session are written.
    """
    with Heartbeat() as beat:
        beat.now("four tables are cut from one")
        show(out, beat, as_json=as_json)


if __name__ == "__main__":
    main()

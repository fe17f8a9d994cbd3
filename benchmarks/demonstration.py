"""What `make demo` runs: the whole product on this machine, each role in a process.

An analyst on SQLite and four parties (two row groups × two column groups) speak HTTP to
each other, each party knowing its own file only. The demo knows all files and the
parties' entropy, so that it can compare with pooled clustering and with a simulation.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click
import numpy as np
import pyarrow as pa
from pyarrow import csv
from sklearn.datasets import load_breast_cancer

from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator
from party_sdk.cli.terminal.output import say
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.home.files import create_private_folder
from party_sdk.lab.local_sessions import local_analyst
from party_sdk.lab.parties import AgreedFields, PartyTables, split_table
from party_sdk.lab.simulated_session import SimulatedSession, play_session
from party_sdk.tables import read_column

SEED: Final = 1
SESSION: Final = "demo"
LAYOUT: Final = Layout.lattice(2, 2)
PARAMS: Final = DataCollaboration(n_clusters=2, dimensions="all_but_one")
# not drawn by chance: every run prints the same numbers
KEYS: Final = simulation.derive_entropies(SEED, SESSION, LAYOUT.names)
ANALYST: Final = Institution.derive(bytes(32))
COTERIE: Final = [sys.executable, "-P", "-m", "party_sdk.cli"]


def play_demo(folder: Path) -> None:
    """Run the demo; print fidelity and where labels and reports are."""
    begin = time.monotonic()
    held = deal_tables(folder)
    say(f"four parties' files are in {folder / 'data'}", err=True)
    say("an analyst starts …", err=True)
    with (
        local_analyst(folder / "analyst", ANALYST) as analyst,
        Coordinator(
            analyst.url,
            analyst.key,
            home=folder / "homes",
            entropy=KEYS[simulation.COORDINATOR],
        ) as coordinator,
    ):
        say(f"an analyst on SQLite listens at {analyst.url}", err=True)
        session = coordinator.create_session(
            SESSION, PARAMS, LAYOUT, session_id=SESSION, seed=SEED
        )
        take_part(folder, session)
        say("reports are written …", err=True)
        reports = write_reports(folder, analyst.url, analyst.key)
    say("the same in simulation, and on the pooled data …", err=True)
    played = play_session(held, PARAMS, SEED, session=SESSION, analyst=ANALYST.key)
    check_labels(played, folder)
    for line in table_lines(held, played):
        click.echo(line)
    click.echo("\nThe labels over HTTP equal those of the simulation, bit for bit.")
    click.echo(f"labels: {folder / 'labels'}")
    click.echo(f"{time.monotonic() - begin:.0f} s\nOpen in a browser:")
    for whose, path in reports.items():
        click.echo(f"  the report of {whose}: {path}")


def deal_tables(folder: Path) -> PartyTables:
    """Write a table for each party: half of the people, half of the variables."""
    for earlier in ("analyst", "homes", "labels"):
        shutil.rmtree(create_private_folder(folder) / earlier, ignore_errors=True)
    bunch = load_breast_cancer()
    names = [name.replace(" ", "_") for name in bunch.feature_names]
    held = split_table(bunch.data, names, AgreedFields(), LAYOUT, SEED)
    data = create_private_folder(folder / "data")
    for slot, source in held.parts.data.items():
        columns = dict(zip(source.columns, matrix(source).T, strict=True))
        table = pa.table({"patient": list(source.ids or ()), **columns})
        csv.write_csv(table, data / f"{slot}.csv")
    return held


def take_part(folder: Path, session: CoordinatedSession) -> None:
    """Let four commands take part, and wait until all have labels."""
    home, labels = folder / "homes", create_private_folder(folder / "labels")
    accept = ["--guard", f"accepted_risks={json.dumps(session.status().risks)}"]
    say("four parties join and answer …", err=True)
    parties = {}
    for slot, invitation in session.invite().items():
        entropy = home / f"{slot}.entropy"
        entropy.write_text(KEYS[slot].hex())
        words = [*COTERIE, "party", "run", invitation, "--home", str(home), "--json"]
        words += ["--data", str(folder / "data" / f"{slot}.csv")]
        words += ["--id-column", "patient", "--labels", str(labels / f"{slot}.csv")]
        words += ["--entropy-file", str(entropy), *accept]
        words += ["--guard", "least_known=0"]  # every institution here is made up
        with (home / f"{slot}.log").open("wb") as log:
            parties[slot] = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=log
            )
    for slot, process in parties.items():
        if process.wait():
            log_file = home / f"{slot}.log"
            said = last_line(log_file.read_text())
            raise Unavailable(
                f"Party {slot} ended early: {said}", remedy=f"Read its log: {log_file}"
            )
        say(f"{slot} has its labels", err=True)


def write_reports(folder: Path, url: str, key: str) -> Mapping[str, Path]:
    """Write the coordinator's report, and that of one party."""
    home, slot = str(folder / "homes"), LAYOUT.names[0]
    paths = {name: folder / f"report-{name}.html" for name in ("coordinator", slot)}
    table = ["--data", str(folder / "data" / f"{slot}.csv"), "--id-column", "patient"]
    commands = {
        "coordinator": ["session", "--home", home, "report", SESSION],
        slot: ["party", "report", SESSION, slot, "--home", home, *table],
    }
    for name, words in commands.items():
        done = subprocess.run(
            [*COTERIE, *words, "--out", str(paths[name]), "--force"],
            env=os.environ | {"COTERIE_URL": url, "COTERIE_KEY": key},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(
                f"'coterie {words[0]} report' ended early: {last_line(done.stderr)}",
                remedy="Run it with --help: it says what the command needs.",
            )
    return paths


def last_line(text: str) -> str:
    """Return the last line, where a command's error or a traceback gives the reason."""
    return (text.strip().splitlines() or ["it said nothing"])[-1].strip()


def check_labels(played: SimulatedSession, folder: Path) -> None:
    """Raise Unavailable if labels that a party wrote differ from the simulation's."""
    for slot, result in zip(LAYOUT.names, played.results, strict=True):
        written = read_column(folder / "labels" / f"{slot}.csv", "label")
        if not np.array_equal(np.array(written, dtype=np.int64), result.labels):
            raise Unavailable(
                f"The labels of {slot} differ from the simulation's.",
                remedy="This is a defect, or a failing machine: run the demo again.",
            )


def table_lines(held: PartyTables, played: SimulatedSession) -> Iterator[str]:
    """Yield a table: the fidelity of each party alone, and of the session."""
    pooled, labels = played.whole.pooled, played.whole.labels
    rows = {slot.name: held.parts.rows[slot.row] for slot in LAYOUT.slots}
    reference = catalogue.find_protocol(PARAMS).reference()
    alone = [
        simulation.compute_fidelity(
            pooled[own],
            reference.cluster_pooled(PARAMS, matrix(held.parts.data[slot]), None),
        )
        for slot, own in rows.items()
    ]
    session = [
        simulation.compute_fidelity(pooled[own], labels[own]) for own in rows.values()
    ]
    lines = {
        "each party alone": [*alone, float(np.mean(alone))],
        "dc": [*session, simulation.compute_fidelity(pooled, labels)],
    }
    yield "Fidelity: agreement with the same k-means on the pooled data (adjusted Rand index)."
    yield "1.000 means that nothing was lost by not pooling."
    yield " " * 20 + "".join(f"{name:>9}" for name in (*rows, "overall"))
    for method, figures in lines.items():
        yield f"  {method:18}" + "".join(f"{figure:9.3f}" for figure in figures)


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("coterie-demo"),
    show_default=True,
    help="Folder to write data, labels and logs to.",
)
def main(out: Path) -> None:
    """Run an analyst and four parties on this machine.

    The data are the breast cancer measurements that come with scikit-learn: 569 people
    and 30 features. Two parties hold 15 features of one half of the people, two hold the
    same features of the other half.
    """
    play_demo(out.resolve())


if __name__ == "__main__":
    main()

"""`coterie try`: cluster a table and write labels and a report, without any options."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from party_sdk.cli.options import FOLDER, OUT, Force, check_new_files
from party_sdk.cli.parameters import argument, command, option
from party_sdk.cli.terminal.output import say
from party_sdk.results.output_files import refuse_overwriting, write_atomically

if TYPE_CHECKING:
    from party_sdk.lab.trial import Trial


@command(name="try")
def try_table(
    file: Annotated[Path | None, argument(type=OUT)] = None,
    *,
    out: Annotated[
        Path,
        option(
            "Folder for labels.csv, report.html and dictionary.json; by default the current one.",
            type=FOLDER,
        ),
    ] = Path(),
    force: Force = False,
) -> None:
    """Cluster FILE as if three institutions held its rows; without FILE, use wine data.

    Nothing is sent. FILE is a text, Excel, Parquet, SPSS, SAS or Stata file. The
    command drafts a dictionary, fills empty cells, and suggests a method and a number
    of clusters. The last line of its output shows how to open a real session.
    """
    from coterie_pages import pages
    from party_sdk.lab.trial import try_table as play
    from party_sdk.results.label_files import write_labels

    table = _write_wine(out, force=force) if file is None else file
    names = ("labels.csv", "report.html", "dictionary.json")
    labels, report, dictionary = paths = [out / name for name in names]
    out.mkdir(parents=True, exist_ok=True)
    check_new_files(paths, table, force=force)
    trial = play(table, on_warning=lambda warning: say(f"warning: {warning}"))
    source, session = trial.source, trial.session
    write_labels(labels, session.whole.labels, source.ids, source.naming, {})
    write_atomically(pages.render_html(trial.report).encode(), report)
    write_atomically(trial.draft.schema.model_dump_json(indent=2).encode(), dictionary)
    _print_trial(trial)
    say(f"{labels}, {report}, {dictionary}")
    words = ["coterie", "session", "create", table.stem, "--protocol", trial.protocol]
    words += ["--clusters", f"{session.n_clusters}"]
    words += ["--party", "north", "--party", "south", "--party", "west"]
    words += ["--schema", str(dictionary), "--missing", "mean"]
    say(f"The same as a session: {shlex.join(words)}")


def _print_trial(trial: "Trial") -> None:
    draft, session = trial.draft, trial.session
    columns = draft.schema.clustered_part.names
    id_columns = draft.options.id_columns
    ids = f", rows identified by {' and '.join(id_columns)}" if id_columns else ""
    say(f"{trial.file}: {trial.source.n_rows:,} rows, {len(columns)} columns{ids}")
    for name, why in draft.left_out.items():
        say(f"left out: {name} ({why})")
    if draft.n_gaps:
        say(f"{draft.n_gaps:,} empty cells: filled by means or most frequent levels")
    say(trial.suggested)
    sizes = ", ".join(map(str, trial.report.sizes))
    say(f"clusters: {sizes} rows")
    if session.fidelity is not None:
        say(f"fidelity {session.fidelity:.4f} (1: as if the rows were pooled)")
    for warning in session.warnings:
        say(f"warning: {warning}")


def _write_wine(folder: Path, *, force: bool) -> Path:
    from sklearn.datasets import load_wine

    bunch, path = load_wine(), folder / "wine.csv"
    refuse_overwriting([path], None, force=force)
    names = [name.replace("/", "_") for name in bunch.feature_names]
    rows = [",".join(("sample", *names))]
    rows += [
        ",".join((f"w{number:03}", *map(str, row)))
        for number, row in enumerate(bunch.data, start=1)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically("\n".join([*rows, ""]).encode(), path)
    return path

"""The study of the four desks, by commands that people type into terminals alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sklearn.metrics import adjusted_rand_score
from support.analyst_process import Analyst
from support.terminal import read

from tests.system.pages.study_bars import MOST_CLICKS, MOST_QUESTIONS, MOST_SECONDS, Bar
from tests.system.pages.typed_commands import OpenCommand, Person, take_default
from tests.system.pages.whole_path import check_labels, exported, german, plain, rows

SECONDS = 120
INVITATION = "my.invitation"
TABLES = {
    "r1c1": ("Nord.csv", german, "Patient"),
    "r2c1": ("South.xlsx", exported, "Nr"),
    "r3c1": ("west.tsv", plain, "id"),
}
CREATE = """
    session create Wards --id wards --protocol llf --schema pilot.json
    --party r1c1 --party r2c1 --party r3c1 --clusters 2..4 --param n_init=1 --param max_iter=4 --choose later
    --profiles members --purpose 'Try commands' --invitations letters
"""


@pytest.fixture
def people(tmp_path: Path) -> Iterator[tuple[Analyst, Person, dict[str, Person]]]:
    """An analyst, the coordinator, and a party for each slot with a table."""
    with ExitStack() as stack:
        analyst = stack.enter_context(Analyst(tmp_path / "analyst"))
        at = {"COTERIE_URL": analyst.url, "COTERIE_KEY": analyst.key}
        coordinator = Person(tmp_path / "coordinator", at)
        stack.enter_context(closing(coordinator))
        plain(coordinator.folder / "pilot.tsv", 0)
        parties = {}
        for number, (slot, (table, write, _)) in enumerate(TABLES.items(), 1):
            party = Person(tmp_path / slot)
            parties[slot] = stack.enter_context(closing(party))
            write(party.folder / table, number)
        yield analyst, coordinator, parties


def hand_over(coordinator: Person, party: Person, slot: str) -> None:
    letter = coordinator.folder / "letters" / f"{slot}.invitation"
    (party.folder / INVITATION).write_text(letter.read_text())


def run_until(runs: list[OpenCommand], said: str) -> None:
    """Let all continue until each has printed what is said."""
    until = time.monotonic() + SECONDS
    while not all(said in each.printed for each in runs):
        assert time.monotonic() < until, [each.printed[-300:] for each in runs]
        running = [each.proceed() for each in runs]
        assert all(running)
        time.sleep(0.02)


def end_all(runs: list[OpenCommand]) -> None:
    while [each for each in runs if each.proceed()]:
        time.sleep(0.02)
    for each in runs:
        each.end()


def prepare(coordinator: Person, parties: dict[str, Person]) -> None:
    """From nothing to three parties whose tables fit."""
    coordinator.waits("identity new University")
    advice = coordinator.waits(
        "advise --partitioning horizontal --parties 3", take_default
    )
    assert "1. llf, cmeans" in advice
    coordinator.waits("schema infer pilot.tsv --id-column id --out pilot.json")
    coordinator.waits(CREATE)
    for number, (slot, party) in enumerate(parties.items(), 1):
        hand_over(coordinator, party, slot)
        party.waits(f"identity new 'Clinic {number}'")
    parties["r1c1"].waits(f"party terms {INVITATION} --out terms.html")
    declined = parties["r3c1"].waits(
        f"party leave {INVITATION} --reason 'Our board meets'"
    )
    assert "Our board meets" in declined
    assert "Our board meets" in coordinator.waits("session show wards")
    coordinator.waits("session invite wards --party r3c1 --invitations letters")
    hand_over(coordinator, parties["r3c1"], "r3c1")
    for slot, party in parties.items():
        table, _, name = TABLES[slot]
        party.waits(f"party check {INVITATION} --data {table} --id-column {name}")


def test_a_whole_session_is_typed(
    people: tuple[Analyst, Person, dict[str, Person]],
) -> None:
    analyst, coordinator, parties = people
    begun = time.monotonic()
    prepare(coordinator, parties)

    started = time.monotonic()
    runs = [
        party.types(
            f"party run {INVITATION} --data {TABLES[slot][0]} "
            f"--id-column {TABLES[slot][2]}"
        )
        for slot, party in parties.items()
    ]
    run_until(runs, "safety number")
    analyst.kill()
    analyst.start()
    run_until(runs, "choosing: ")
    waited = time.monotonic() - started
    coordinator.waits("session show wards")
    own = parties["r2c1"].waits(
        "party report wards --runs --data South.xlsx --id-column Nr"
    )
    assert "from 2 to 3 clusters" in own
    coordinator.waits("session choose wards --n-clusters 3")
    resumed = time.monotonic()
    end_all(runs)
    waited += time.monotonic() - resumed
    coordinator.waits("session report wards --out report.html")
    for slot, party in parties.items():
        table, _, name = TABLES[slot]
        data = f"--data {table} --id-column {name}"
        party.waits(f"party report wards {data} --out report.html")
    own_seconds = time.monotonic() - begun - waited

    found, truth = [], []
    labels = {}
    for number, (slot, party) in enumerate(parties.items(), 1):
        ids, _, blobs = rows(number)
        lines = read(party.folder / "labels.csv")
        assert [line[TABLES[slot][2]] for line in lines] == ids
        labels[slot] = [int(line["label"]) for line in lines]
        found += labels[slot]
        truth += blobs.tolist()
    assert adjusted_rand_score(truth, found) == 1
    check_labels(labels)

    typed = {"coordinator": coordinator, **parties}
    bars = [
        *(
            Bar(f"commands and answers, {who}", person.effort, MOST_CLICKS)
            for who, person in typed.items()
        ),
        Bar("seconds beside the session, all", round(own_seconds), MOST_SECONDS),
        *(
            Bar(f"questions while it runs, {slot}", len(run.questions), MOST_QUESTIONS)
            for slot, run in zip(parties, runs, strict=True)
        ),
    ]
    sys.stdout.write("".join(f"{each}\n" for each in bars))
    assert [each for each in bars if each.figure > each.most] == []

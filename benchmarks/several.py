"""What several analysts over one database and one store take, beside a single one.

    python -m benchmarks.several --postgres URL [--sessions 40] [--parties 3]
                                 [--analysts 1 3] [--store URL]

Runs sessions of the dummy at once over one analyst and over three, in one run: each has
a data folder of its own, all share an empty PostgreSQL database and one object store (a
folder by default). Parties are dealt out to the addresses, session by session, so that
those of one session ask different ones. Prints answers per second, per second of
processor time of all analysts, and both as ratios to the first. On one machine analysts
share its processors: what counts is the second.
Ends with 1 where a request was refused or a session has not completed.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.analyst_process import AnalystProcess, join_all
from benchmarks.rounds import answer_all, empty


class Cost(NamedTuple):
    """What a run took, and what came of it."""

    answers: int
    seconds: float
    processor: float
    is_well: bool


def main() -> int:
    """Print what each number of analysts took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postgres", required=True, help="URL of a server's database.")
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--analysts", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--store", default="", help="A folder by default.")
    options = parser.parse_args()
    first: Cost | None = None
    is_well = True
    for count in options.analysts:
        cost = measured(options, count)
        first = first or cost
        rate, each = cost.answers / cost.seconds, cost.answers / cost.processor
        to_rate = rate / (first.answers / first.seconds)
        to_each = each / (first.answers / first.processor)
        print(
            f"{count} analysts: {cost.answers} answers, {rate:.0f} per second "
            f"(x {to_rate:.2f}), {each:.0f} per second of processor time "
            f"(x {to_each:.2f}); {'well' if cost.is_well else 'NOT WELL'}",
            flush=True,
        )
        is_well &= cost.is_well
    return 0 if is_well else 1


def measured(options: argparse.Namespace, count: int) -> Cost:
    """Return what so many analysts take for the sessions."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(empty(options.postgres))
        (folder / "objects").mkdir()
        shared = {
            "COTERIE_BLOB_STORE": options.store or (folder / "objects").as_uri(),
            "COTERIE_IDENTITY_FILE": str(folder / "identity.json"),
        }
        analysts = []
        for number in range(count):
            own = folder / f"analyst-{number}"
            own.mkdir()
            process = AnalystProcess(own, database, environment=shared)
            analysts.append(stack.enter_context(process))
        return run(analysts, options.sessions, options.parties)


def run(analysts: list[AnalystProcess], sessions: int, parties: int) -> Cost:
    """Let all sessions go through their rounds at once."""
    names = [f"s-{number}" for number in range(sessions)]
    with analysts[0].client() as client:
        members = [
            member for name in names for member in join_all(client, name, parties, 10)
        ]
        ports = [
            analysts[(number + number // parties) % len(analysts)].port
            for number in range(len(members))
        ]
        idle, begin = spent(analysts), time.perf_counter()
        counts: Counter[int] = Counter()

        async def take_part() -> None:
            pairs = zip(ports, members, strict=True)
            await asyncio.gather(
                *(answer_all(port, None, member, counts) for port, member in pairs)
            )

        asyncio.run(take_part())
        seconds = time.perf_counter() - begin
        processor = spent(analysts) - idle
        states = Counter(client.session(name).state.value for name in names)
    answers = sum(counts.pop(status, 0) for status in (200, 201, 204))
    is_well = not counts and states == {"completed": sessions}
    return Cost(answers, seconds, processor, is_well)


def spent(analysts: list[AnalystProcess]) -> float:
    """Return the processor time of all so far: what serves, and what steps rounds."""
    return sum(sum(each.processor_seconds()) for each in analysts)


if __name__ == "__main__":
    raise SystemExit(main())

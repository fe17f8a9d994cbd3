"""Sessions of honest parties by the SDK, beside an analyst in this process.

No message is altered: an attacker chooses terms or tables, or keeps what its own
software reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from support.analyst_process import House
from support.in_process import in_process
from support.verdicts import Refused, check

from clustering_protocols.common.errors import (
    Cancelled,
    CoterieError,
    PartyStopped,
    SessionOver,
)
from clustering_protocols.contract import Params
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout
from coterie import Result

Outcome = dict[str, Result] | CoterieError
_FOLLOWING = (Cancelled, PartyStopped, SessionOver)


@contextmanager
def house_in(folder: Path) -> Iterator[House]:
    """Lend homes of a coordinator and of parties; rounds are stepped unasked."""
    with in_process(folder / "analyst", driven=True) as api:
        yield House(api, folder)


def play(
    house: House,
    name: str,
    params: Params,
    layout: Layout,
    tables: Sequence[pd.DataFrame],
    *,
    ids: str | Sequence[str] | None = None,
    rules: Mapping[str, Mapping[str, Any]] | None = None,
    **terms: Any,
) -> Outcome:
    """Play a session to its end: the result of each party, or the error that ended it.

    ids: the columns that name rows at every party.
    rules: by slot, of a party's policy beside accepted risks.
    """
    session = house.open(name, params, layout, **terms)
    invitations = session.invite()
    parties = {
        slot: house.accept(session, invitations, slot, **(rules or {}).get(slot, {}))
        for slot in invitations
    }
    how = {} if ids is None else {"id_column": ids}
    results: dict[str, Result] = {}
    errors: list[CoterieError] = []
    with ThreadPoolExecutor(len(parties)) as pool:
        runs = {
            pool.submit(party.run, table, **how): slot
            for (slot, party), table in zip(parties.items(), tables, strict=True)
        }
        for run in as_completed(runs):
            try:
                results[runs[run]] = run.result()
            except CoterieError as error:
                if not errors:
                    session.cancel()
                errors.append(error)
    # where one party stops, the others end with what follows from it
    causes = [each for each in errors if not isinstance(each, _FOLLOWING)]
    return results if not errors else [*causes, *errors][0]


def completed(outcome: Outcome) -> dict[str, Result]:
    if isinstance(outcome, CoterieError):
        raise outcome
    return outcome


def check_refused(outcome: Outcome, refusal: Refused) -> None:
    assert isinstance(outcome, CoterieError), "no refusal any more"
    check(outcome, refusal)


def numbers(
    names: Sequence[str],
    least: float = -10,
    most: float = 500,
    *,
    kind: str = "integer",
    codes: Mapping[str, tuple[str, ...]] | None = None,
) -> Schema:
    """Return a dictionary of numbers with bounds; codes: those for no value, by field."""
    bounds = Constraints(minimum=least, maximum=most)
    return Schema(
        fields=tuple(
            Field(
                name=name,
                type=kind,
                constraints=bounds,
                missingValues=(codes or {}).get(name),
            )
            for name in names
        )
    )

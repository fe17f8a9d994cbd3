"""What the people of each table have been spent of their privacy, over all sessions.

``spent.json`` in the party's home, beside the folders of its sessions: for each table,
by the digest of its columns, ids and rows, the (ε, δ) of every session that made a
release of it. It is written and synced before a release leaves, and stays when a session
is forgotten. A table with one row more is another table: what people lose over several
tables, only the operator knows.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Final, TypeAlias

from clustering_protocols.common.errors import GuardRefused, NotReady
from clustering_protocols.contract import PrivacySpending
from party_sdk.home.files import wait_for_lock, write_private

_ROUNDING: Final = 1 + 1e-9  # a tenth, ten times, is one

_Costs: TypeAlias = dict[str, dict[str, list[float | None]]]


class PrivacyBudget:
    """What sessions have spent of the tables of one home."""

    def __init__(self, home: Path) -> None:
        self._path = home / "spent.json"

    def check(self, table: str, use: str, epsilon: float, total: float | None) -> None:
        """Refuse a session of so much ε; :class:`GuardRefused` if it is too much.

        table: SHA-256 (hex) of the table.
        use: names session, slot and agreement: of one use a release is counted once,
            however often it is sent.
        total: the largest ε over all sessions; nothing is refused without one.
        """
        _check(self._read(), table, use, epsilon, total)

    def spend(
        self, table: str, use: str, cost: PrivacySpending, total: float | None
    ) -> None:
        """Count a release before it leaves, or refuse it with :class:`GuardRefused`."""
        epsilon = math.inf if cost.epsilon is None else cost.epsilon
        with wait_for_lock(self._path.with_name("spent.lock")):
            known = self._read()
            _check(known, table, use, epsilon, total)
            known.setdefault(table, {})[use] = [cost.epsilon, cost.delta]
            write_private(self._path, json.dumps(known, sort_keys=True).encode())

    def epsilon(self, table: str) -> float:
        """Return ε over all sessions; infinite if one made a release without noise."""
        return sum(_epsilons(self._read(), table).values())

    def _read(self) -> _Costs:
        try:
            known: _Costs = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:  # nobody may continue as if nothing had been spent
            raise NotReady(f"{self._path} cannot be read; put a copy back.") from None
        return known


def _check(
    known: _Costs, table: str, use: str, epsilon: float, total: float | None
) -> None:
    if total is None:
        return
    others = {k: e for k, e in _epsilons(known, table).items() if k != use}
    spent = math.fsum(others.values())
    if spent + epsilon > total * _ROUNDING:
        raise GuardRefused(
            f"This session costs each person ε = {epsilon:.4g}; earlier ones on the "
            f"same table have cost {spent:.4g}. 'epsilon_total' is {total:.4g}."
        )


def _epsilons(known: _Costs, table: str) -> dict[str, float]:
    return {
        where: math.inf if epsilon is None else epsilon
        for where, (epsilon, _) in known.get(table, {}).items()
    }

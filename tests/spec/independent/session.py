"""Sections 4, 5 and 11: what a party agreed to, who takes part, and its own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal, Stream, derive, own_stream, party_keys
from .dictionary import Field, find_places, read_fields
from .ids import arrive, read_alignment
from .match_keys import find_values
from .preparation import Plan, read_plan
from .roster import check_agreement, read_invitation

_KNOWN: Final = {
    "coterie",
    "session",
    "seed",
    "layout",
    "protocol",
    "dictionary",
    "identities",
    "guards",
    "deadlines",
    "about",
    "evaluation",
    "release",
    "preparation",
    "risks",
}
_VERSION: Final = 2


@dataclass
class Table:
    """Section 14: a party's own rows, as they came."""

    columns: list[str]
    ids: list[str] | None
    rows: list[list[float | None]]


@dataclass
class Session:
    """Sections 4 and 5: terms, roster, and where this party stands in them."""

    slot: str
    entropy: bytes
    terms: dict[str, Any]
    agreement: str
    roster: dict[str, dict[str, Any]]
    rows: NDArray[np.float64] = field(repr=False)
    columns: list[str]
    ids: list[str] | None
    arrived: list[int] = field(repr=False)
    fields: NDArray[np.float64] = field(repr=False)
    described: Sequence[Field]
    n_table: int
    plan: Plan | None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Section 4: the id of the session."""
        return str(self.terms["session"])

    @property
    def column(self) -> int:
        """Section 4: the number of this party's column group."""
        return next(
            number
            for number, group in enumerate(self.groups("column"))
            if self.slot in group
        )

    @property
    def slots(self) -> list[str]:
        """Section 4: the slots in their order."""
        return list(self.roster)

    @property
    def own(self) -> dict[str, Any]:
        """Section 5: this party's member of the roster."""
        return self.roster[self.slot]

    def group(self, scope: str, slot: str = "") -> list[str]:
        """Section 4: the row or column group of a slot, this party's by default."""
        place = self._places[slot or self.slot][scope]
        return [each for each in self.slots if self._places[each][scope] == place]

    def groups(self, audience: str) -> list[list[str]]:
        """Section 7: the groups of an audience, in order."""
        if audience == "all":
            return [self.slots]
        if audience == "slot":
            return [[slot] for slot in self.slots]
        found = {self._places[s][audience]: self.group(audience, s) for s in self.slots}
        return [found[place] for place in sorted(found)]

    @property
    def shares_rows(self) -> bool:
        """Section 4: whether a row group has two parties."""
        return _shares_rows(self.terms)

    @property
    def _places(self) -> dict[str, dict[str, int]]:
        """Section 4: row and column group of each slot."""
        return {each["name"]: each for each in self.terms["layout"]["slots"]}

    def ranges(self, slot: str = "") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Section 4: the range of each column; infinite where nothing is said."""
        slot = slot or self.slot
        names = [str(number) for number in range(self.roster[slot]["n_columns"])]
        fields = read_fields(self.terms, slot, names)
        plan = read_plan(self.terms, slot)
        ends = [each.range for each in fields if each.clustered]
        low, high = np.array(plan.ranges if plan else ends).T
        return low, high

    def prepare(self, filled: Sequence[float]) -> Session:
        """Section 11, preparation: this session over the columns of its rows."""
        if self.plan is None:
            return self
        return replace(self, rows=self.plan.prepare(self.rows, filled))

    def units(self, deviation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Section 11, preparation, columns: by what columns are divided."""
        if self.plan is None:
            return deviation
        return np.where(self.plan.ready, 1.0, deviation / self.plan.weights)

    def n_rows(self, group: Sequence[str]) -> int:
        """Section 5: how many rows some slots have together."""
        found = (self.counts.get(slot, self.roster[slot]["n_rows"]) for slot in group)
        return sum(found)

    def select(self, rows: Sequence[int], counts: Mapping[str, int]) -> Session:
        """Section 11, intersection: this session over some of the rows."""
        return replace(
            self,
            rows=self.rows[list(rows)],
            fields=self.fields[list(rows)],
            ids=None if self.ids is None else [self.ids[row] for row in rows],
            arrived=[self.arrived[row] for row in rows],
            counts=counts,
        )

    @property
    def runs(self) -> list[int]:
        """Section 11, several runs: the number of clusters of each."""
        own = self.terms["protocol"].get("params", {}).get("n_clusters", 0)
        evaluation = self.terms.get("evaluation")
        return evaluation["n_clusters"] if evaluation else [own]

    def of_run(self, run: int | None) -> Session:
        """Section 11, several runs: this session with the parameters of a run."""
        if run is None or len(self.runs) == 1:
            return self
        protocol = self.terms["protocol"]
        params = {**protocol["params"], "n_clusters": self.runs[run]}
        return replace(
            self, terms={**self.terms, "protocol": {**protocol, "params": params}}
        )

    def keys(self) -> Any:
        """Section 2: the keys of this party."""
        return party_keys(self.entropy, self.id, self.slot)

    def public_stream(self, *use: str | int) -> Stream:
        """Section 2: what all draw alike for a use."""
        seed = int(self.terms["seed"]).to_bytes(8, "big")
        return Stream(derive(seed, b"", "coterie/public-stream/1", self.id, *use))

    def draw(self, stage: str, purpose: str, transcript: str = "") -> Stream:
        """Section 2: own chance, of one attempt or of all."""
        return own_stream(self.entropy, transcript, purpose, self.id, self.slot, stage)


def _shares_rows(terms: Mapping[str, Any]) -> bool:
    """Section 4: whether a row group has two parties."""
    rows = [each["row"] for each in terms["layout"]["slots"]]
    return len(set(rows)) < len(rows)


def ring_of(terms: Mapping[str, Any], slot: str) -> list[str]:
    """Section 11, linkage: the parties whose people are compared with those of a slot."""
    rows = {each["name"]: each["row"] for each in terms["layout"]["slots"]}
    return [each for each, row in rows.items() if row == rows[slot]]


def open_session(
    given: Mapping[str, Any], read: dict[str, Any], *, aligned: bool
) -> Session:
    """Sections 4 and 5: check what was joined.

    aligned: whether rows of a row group come in the order of their ids.
    """
    terms, agreement = given["terms"], given["agreement"]
    invited = read_invitation(given["invitation"])
    named = (read["session"], given["slot"], read["identities"].get("coordinator"))
    digest = sha256(terms.encode()).hexdigest()
    said = (invited["session"], invited["slot"], invited["coordinator"])
    if named != said or digest != invited["terms"]:
        raise Refusal("agreement-mismatch")
    secret = bytes.fromhex(invited["session_secret"])
    agreed = check_agreement(agreement, terms, secret, given["own"])
    table = Table(**given["table"])
    described = read_fields(read, given["slot"], table.columns)
    fields = np.array(table.rows, np.float64)
    fields = fields[:, find_places(described, table.columns)]
    used = [place for place, each in enumerate(described) if each.clustered]
    plan, rows = read_plan(read, given["slot"]), fields[:, used]
    if plan is None and np.isnan(rows).any():
        raise Refusal("invalid-data")
    whole = list(range(len(rows))) if plan is None else plan.find_whole_rows(rows)
    ids = None if table.ids is None else [table.ids[row] for row in whole]
    alignment = read_alignment(read) if aligned else {}
    shared = aligned and len(ring_of(read, given["slot"])) > 1
    order = list(range(len(whole)))
    if shared and alignment.get("match_keys"):
        find_values(ids, alignment)
    else:
        order = arrive(ids, len(whole), alignment, shared=shared)
    roster = {each["slot"]: each for each in json.loads(agreement)["roster"]}
    _check_widths(read, roster)
    if len(order) < read.get("guards", {}).get("minimum_rows", 10):
        raise Refusal("guard-refused")
    arrived = [whole[row] for row in order]
    observed = rows[arrived] if plan is None else plan.take_logarithms(rows[arrived])
    names = [described[place].name for place in used]
    session = Session(
        slot=given["slot"],
        entropy=bytes.fromhex(given["entropy"]),
        terms=read,
        agreement=agreed,
        roster=roster,
        rows=observed,
        fields=fields[arrived],
        described=described,
        columns=names if plan is None else plan.columns,
        ids=None if table.ids is None else [table.ids[row] for row in arrived],
        arrived=arrived,
        n_table=len(table.rows),
        plan=plan,
    )
    return session if plan is None or plan.fills else session.prepare(())


def read_terms(text: str, versions: Mapping[str, int]) -> dict[str, Any]:
    """Section 4: terms that this party knows all of. Versions: of its protocols."""
    terms: dict[str, Any] = json.loads(text)
    if terms.get("coterie") != _VERSION:
        raise Refusal("version-mismatch")
    protocol = terms["protocol"]
    if versions.get(protocol["name"]) != protocol["version"] or set(terms) - _KNOWN:
        raise Refusal("version-mismatch")
    runs = terms.get("evaluation", {}).get("n_clusters", [])
    if runs and runs[-1] != protocol["params"].get("n_clusters"):
        raise Refusal("invalid-parameters")
    return terms


def _check_widths(
    terms: Mapping[str, Any], roster: Mapping[str, Mapping[str, Any]]
) -> None:
    """Section 4, dictionary: all slots have the columns that are clustered."""
    for slot, member in roster.items() if "dictionary" in terms else ():
        plan, fields = read_plan(terms, slot), read_fields(terms, slot, ())
        due = len(plan.columns) if plan else sum(each.clustered for each in fields)
        if due != member["n_columns"]:
            raise Refusal("protocol-failed")

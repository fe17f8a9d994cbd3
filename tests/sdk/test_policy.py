"""What a party agrees to: other parties' numbers of ids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.stepwise import agree
from support.tables import blobs, parties

from clustering_protocols.errors import GuardRefused
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.terms import Layout, canonical_json, read_agreement
from party_sdk import Policy

PSI = {"alignment": {"method": "ecdh"}}


def agreement(sizes: list[int], alignment: dict[str, Any]) -> bytes:
    split = parties(blobs(max(sizes), 2 * len(sizes)), [range(n) for n in sizes])
    params = ProductQuantisation.model_validate({"n_clusters": 2, **alignment})
    agreed, _ = agree(params, split.data, split.layout, 1, "s")
    return agreed


@pytest.mark.threat(98)
def test_a_row_group_may_bring_so_many_ids_for_each_row() -> None:
    content = agreement([40, 400], PSI)
    Policy().check_roster(content, "r1c1")
    Policy().check_roster(content, "r1c2")
    content = agreement([40, 30, 401], PSI)
    with pytest.raises(GuardRefused, match="'r1c3' may bring 401 ids for your 40 rows"):
        Policy().check_roster(content, "r1c1")
    with pytest.raises(GuardRefused, match=r"401 ids for your 30 rows, 13\.37 times"):
        Policy().check_roster(content, "r1c2")
    Policy().check_roster(content, "r1c3")
    Policy(ids_per_row=13.4).check_roster(content, "r1c2")


@pytest.mark.threat(98)
def test_a_number_of_rows_that_cannot_be_is_refused() -> None:
    agreed, _ = read_agreement(agreement([40, 41], PSI))
    first, second = agreed.roster
    huge = second.model_copy(update={"n_rows": 2**39})
    content = canonical_json(agreed.model_copy(update={"roster": (first, huge)}))
    with pytest.raises(GuardRefused, match="549755813888 ids for your 40 rows"):
        Policy().check_roster(content, "r1c1")


def test_where_no_ids_are_compared_other_row_groups_may_be_of_any_size() -> None:
    split = parties(blobs(600, 4), [range(20), range(600)])
    params = DataCollaboration(n_clusters=2)
    agreed, _ = agree(params, split.data, Layout.lattice(1, 2), 1, "s")
    Policy().check_roster(agreed, "r1c1")
    strict = replace(Policy(), ids_per_row=0.0)
    with pytest.raises(GuardRefused):
        strict.check_roster(agreement([20, 20], PSI), "r1c1")

"""How many rows are linked is asked about before they are used, and read in the report."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.analyst_process import House
from support.in_process import Api
from support.terminal import Terminal

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import StopReason
from party_sdk.party.asker import Asker
from party_sdk.party.participant import Party
from party_sdk.reports.run_reports import describe_linked_rows, run_report
from party_sdk.supervisor.order_runner import DecisionPending, OrderAsker
from party_sdk.supervisor.orders import Order, PartyOrder, QuestionKind

LAYOUT = Layout.lattice(1, 2)
TWENTY = "60 to 65 % of the smallest table in common; the terms expect 80%"
ALLOWED = {"allow_small_overlap": True}


def params(**alignment: object) -> ProductQuantisation:
    said = Alignment.model_validate({"method": "ecdh", **alignment})
    return ProductQuantisation(n_clusters=2, codebook_size=4, alignment=said)


def table(ids: Sequence[str], column: str) -> MatrixSource:
    rng = np.random.default_rng(len(ids))
    return MatrixSource(rng.normal(size=(len(ids), 2)), [column, f"{column}2"], ids)


LEFT = table([f"P{n:03}" for n in range(40)], "a")
RIGHT = table([f"P{n:03}" for n in range(15, 65)], "b")  # 25 of 40


@pytest.fixture(scope="module")
def house(driven_api: Api, tmp_path_factory: pytest.TempPathFactory) -> House:
    return House(driven_api, tmp_path_factory.mktemp("house"))


class Operators(Asker):
    """Two parties of one session, started again as often as it takes."""

    def __init__(self, house: House, name: str, **alignment: object) -> None:
        self.house = house
        self.session = house.open(name, params(**alignment), LAYOUT)
        self.invitations = self.session.invite()
        self.asked: list[Inspection] = []

    def party(self, slot: str, **given: Any) -> Party:
        return self.house.accept(self.session, self.invitations, slot, **given)

    def run(self, **given: Any) -> list[Any]:
        def one(slot: str, rows: MatrixSource) -> Any:
            with self.party(slot, **given) as party:
                try:
                    return party.run(rows)
                except GuardRefused as refused:
                    return refused.detail

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, self.invitations, (LEFT, RIGHT)))

    def approve(self, found: Inspection) -> bool:
        self.asked.append(found)
        return True


def test_few_linked_rows_stop_every_party_that_asks_nobody(house: House) -> None:
    two = Operators(house, "few")
    for said in two.run(ids_per_row=0.5):
        assert "ids for your" in said
    assert {slot.stopped for slot in two.session.status().slots} == {StopReason.HELD}
    for said in two.run():
        assert TWENTY in said
        assert "--choice allow_small_overlap=true" in said
        assert "25" not in said
    for said in two.run(choices=ALLOWED, minimum_rows=30):
        assert "'minimum_rows' is 30" in said
    first, second = two.run(choices=ALLOWED)
    assert (first.labels >= 0).sum() == (second.labels >= 0).sum() == 25
    assert not any(slot.stopped for slot in two.session.status().slots)
    with two.party("r1c1") as party:
        terms, result = party.terms, party.result()
        assert describe_linked_rows(terms, "r1c1", result) == "25 of 40"
        report = run_report(party, house.home_of("r1c1"))
        told = [line.told for line in report.left if line.told]
    assert report.linked == "25 of 40"
    assert {"linked rows": "60 to 65 % of the smallest table"} in told


def test_an_operator_who_is_there_is_asked_before_any_data_leave(house: House) -> None:
    two = Operators(house, "asked")
    results = two.run(asker=two)
    assert [(each.labels >= 0).sum() for each in results] == [25, 25]
    assert len(two.asked) == 2
    for each in two.asked:
        assert TWENTY in each.asks
        assert each.kind == "digests"
    # as the desk and the supervisor ask
    files = PartyOrder(house.home_of("desk"), "asked", "r1c1")
    files.save_order(Order(invitation=""))
    with pytest.raises(DecisionPending):
        OrderAsker(files).approve(two.asked[0])
    question = files.question()
    assert question.kind is QuestionKind.CHOICE
    assert TWENTY in question.sentence


def test_a_party_sees_how_many_ids_match_the_session_pattern(online: Terminal) -> None:
    create = ("session", "create", "Ids", "--protocol", "pqmds", "--same-people")
    parties = ("--party", "r1c1", "--party", "r1c2")
    params = ("--param", "n_clusters=2", "--param", "alignment.method=ecdh")
    made = online.json(*create, *parties, *params, "--id-pattern", "KV-99999999")
    invitation = made["invitations"]["r1c1"]
    lines = [f"kv {n},{n % 7},{n % 5}" for n in range(100, 140)]
    path = online.file("ids.csv", "\n".join(["patient,x,y", *lines]))
    told = online.json(
        "party", "check", invitation, "--data", path, "--id-column", "patient"
    )
    [said] = [each for each in told["warnings"] if "look like" in each]
    assert "0 of 40 ids look like the session's 'KV-99999999'" in said
    assert (
        "With the steps digits, strip-zeros in alignment.normalisation 40 would" in said
    )

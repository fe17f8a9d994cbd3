"""Messages of recorded sessions at which a party must stop."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.vectors.forgery import (
    RESULT,
    Change,
    FalsifiedSum,
    Forger,
    announce,
    ask_for,
    cut_array,
    drop_envelopes,
    drop_last_byte,
    extend_header,
    flip_bit,
    raise_item,
    relabel,
    rename_record,
    repeat,
    set_address,
    set_arrays,
    set_kind,
    set_line,
    set_values,
)
from benchmarks.vectors.form import Refusal
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Packet
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.protocols.dummy import messages
from clustering_protocols.secrecy.prime import P
from clustering_protocols.shared_stages.alignment.digests import Digests
from clustering_protocols.shared_stages.alignment.linkage import MaskedKeys
from clustering_protocols.shared_stages.secrets import ColumnSecret, GroupSecret
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.shared_stages.statistics.ranges import PooledRanges

_OTHER = "ab" * 32
_FAILED = "protocol-failed"


# Sessions of `dummy`


def of_dummy(forger: Forger) -> list[Refusal]:
    """Return the refusals by the second of three parties."""
    word = messages.Word(word=np.array([7], np.uint64))
    labels = forger.result.arrays["labels"]
    return forger.refuse(
        (
            *("sign", 0, "agreement-mismatch"),
            {
                "of another session": lambda p: set_address(p, session="other"),
                "of another agreement": lambda p: set_address(p, agreement=_OTHER),
                "for another slot": lambda p: set_address(p, slot="west"),
            },
        ),
        (
            *("sign", 0, "malformed"),
            {
                "of a stage that there is not": lambda p: set_address(
                    p, stage="upload"
                ),
                "a kind that the stage has not": lambda p: set_kind(p, "greet"),
                "without its last byte": drop_last_byte,
                "with more in its header": extend_header,
            },
        ),
        # the lines of the transcript
        (
            *("sign", 0, "task-refused"),
            {"lines of another agreement": _name_another_agreement},
        ),
        (
            *("greet", 0, "task-refused"),
            {
                "another past": lambda p: set_line(p, previous=_OTHER),
                "a line was left out": lambda p: set_line(p, number=4),
                "a round was left out": lambda p: set_address(
                    set_line(p, round=3), round=3
                ),
                "the line is of another stage": lambda p: set_line(p, stage="count"),
                "the line asks something else": lambda p: set_line(p, asks="count"),
                "the line leaves the party out": lambda p: set_line(
                    p, left_out=["south"]
                ),
                "others were told otherwise": lambda p: set_line(p, told=[_OTHER]),
                "no line at all": lambda p: replace(p, history=[]),
            },
        ),
        # the order of tasks
        (
            *("greet", 0, "task-refused"),
            {"a stage was left out": lambda p: ask_for(p, "count", "count")},
        ),
        (
            *("confirm", 0, "task-refused"),
            {
                "a task that was answered": lambda p: ask_for(p, "count", "count"),
                "a stage that is over": lambda p: ask_for(p, "greeting", "greet"),
                "a task that comes too early": lambda p: _tell_choice(
                    ask_for(p, "closing", "conclude"), figures=[], chosen=0
                ),
            },
        ),
        # signatures
        (
            *("greet", 0, _FAILED),
            {
                "a signature of the opening is missing": _blank_last_signature,
                "two signatures were exchanged": lambda p: replace(
                    p, signatures=p.signatures[[1, 0, 2]]
                ),
                "no signature came": _drop_signatures,
            },
        ),
        # envelopes
        (
            *("count", 0, "envelope-refused"),
            {
                "a bit of an envelope": flip_bit,
                "another sender on the label": lambda p: relabel(p, peer="west"),
                "a sender that there is not": lambda p: relabel(p, peer="east"),
                "another kind on the label": lambda p: relabel(p, kind="greet"),
                "another stage on the label": lambda p: relabel(p, stage="count"),
                "a stage that seals nothing": lambda p: relabel(p, stage="opening"),
                "an earlier round on the label": lambda p: relabel(p, round=1),
                "the round of the task on the label": lambda p: relabel(p, round=3),
                "another attempt on the label": lambda p: relabel(p, attempt=2),
            },
        ),
        ("count", 0, _FAILED, {"a word is withheld": drop_envelopes}),
        (
            *("confirm", 0, _FAILED),
            {"another word comes back": lambda p: forger.seal(p, 0, word)},
        ),
        # content
        (
            *("confirm", 0, "task-refused"),
            {"another number than others were told": lambda p: set_values(p, total=34)},
        ),
        (
            *("confirm", 0, _FAILED),
            {"another number of rows": lambda p: announce(set_values(p, total=34))},
        ),
        (
            *("confirm", 0, "malformed"),
            {
                "a number that is a text": lambda p: announce(
                    set_values(p, total="33")
                ),
                "a value that nobody knows": lambda p: announce(set_values(p, more=1)),
            },
        ),
        (
            *("confirm", 0, "invalid-array"),
            {
                "an array that nobody knows": lambda p: announce(
                    set_arrays(p, x=np.eye(1))
                )
            },
        ),
        # the closing and the result
        (
            *("conclude", 0, _FAILED),
            {
                "a second run": lambda p: _tell_choice(p, chosen=1),
                "figures of two runs": lambda p: _tell_choice(
                    p, figures=[Figures(n_clusters=3).model_dump()] * 2
                ),
            },
        ),
        (
            *("conclude", 0, "task-refused"),
            {"others were told of another run": lambda p: set_values(p, chosen=1)},
        ),
        (
            *(RESULT, 0, _FAILED),
            {
                "a signature of the closing is missing": _blank_last_signature,
                "no signature of the closing": _drop_signatures,
            },
        ),
        (
            *(RESULT, 0, "task-refused"),
            {
                "another result than was told": lambda p: set_arrays(
                    p, labels=labels[::-1]
                )
            },
        ),
        (
            *(RESULT, 0, "invalid-array"),
            {"a label below zero": lambda p: set_arrays(p, labels=labels - 1)},
        ),
        (
            *(RESULT, 0, "malformed"),
            {"a kind that is no result": lambda p: set_kind(p, "greet")},
        ),
    )


def of_second_attempt(forger: Forger) -> list[Refusal]:
    """Return the refusals in the second attempt of a round."""
    opening = forger.task("sign", 0)
    return forger.refuse(
        (
            *("greet", 0, "malformed"),
            {"the opening again, as the closing": lambda _: repeat(opening, "closing")},
        ),
        (
            *("count", 1, "task-refused"),
            {
                "an attempt was left out": lambda p: set_address(
                    set_line(p, attempt=3), attempt=3
                ),
                "an attempt without what came in the one before": drop_envelopes,
            },
        ),
    )


def _tell_choice(packet: Packet, **values: object) -> Packet:
    """Return the closing with other values, of which everybody was told."""
    said = set_values(packet, **values)
    told = json.loads(packet.history[-1])["told"]
    digest = packets.digest_content(said.header.record, said.arrays)
    return set_line(said, told=[digest, *told[1:]])


def _name_another_agreement(packet: Packet) -> Packet:
    first, *lines = packet.history
    changed = first.replace(packet.address.agreement, _OTHER)
    return replace(packet, history=[changed, *lines])


def _blank_last_signature(packet: Packet) -> Packet:
    signatures = packet.signatures.copy()
    signatures[-1] = 0
    return replace(packet, signatures=signatures)


def _drop_signatures(packet: Packet) -> Packet:
    return replace(packet, signatures=packet.signatures[:0])


# Sessions of `dc`


def of_adding_member(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members, who add up."""
    own = GroupSecret(scope="row", secret=_OTHER)
    digests = Digests(rows=_OTHER, columns=_OTHER)
    return forger.refuse(
        (
            *("compare-digests", 0, "envelope-refused"),
            {
                "a secret is withheld": drop_envelopes,
                "a secret of a group that its sender does not lead": lambda p: (
                    forger.seal(p, 0, own)
                ),
            },
        ),
        (
            *("add-up", 0, "envelope-refused"),
            {"the leader's digests are withheld": drop_envelopes},
        ),
        (
            *("add-up", 0, _FAILED),
            {"the leader holds other columns": lambda p: forger.seal(p, 0, digests)},
        ),
        (
            *("add-up", 2, "task-refused"),
            {
                "a total of which others were told otherwise": lambda p: set_arrays(
                    p, total=p.arrays["total"] + np.uint64(1)
                )
            },
        ),
        (
            *("add-up", 2, _FAILED),
            {
                "a word of a total is one more": lambda p: raise_item(p, "total", 0, 1),
                "the tag of a total is one more": lambda p: raise_item(
                    p, "total", -1, 1
                ),
                "the tag is p more": lambda p: raise_item(p, "total", -1, P),
                "a phase was left out": lambda p: announce(set_values(p, phase=4)),
            },
        ),
        (
            *("add-up", 2, "invalid-array"),
            {"a total without its tag": lambda p: cut_array(p, "total")},
        ),
        (
            *("conclude", 0, "task-refused"),
            {"a second upload": lambda p: ask_for(p, "upload", "project")},
        ),
        (
            *(RESULT, 0, "task-refused"),
            {
                "labels of fewer rows": lambda p: set_arrays(
                    p, labels=p.arrays["labels"][:-1]
                )
            },
        ),
    )


def of_pair(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of two members, who pool ranges through their leader."""
    pooled = PooledRanges(minimum=np.zeros(3), maximum=np.ones(3))
    narrow = PooledRanges(minimum=np.zeros(2), maximum=np.ones(2))
    wide = pooled.replace(maximum=np.full(3, 1e101))
    return forger.refuse(
        (
            *("project", 0, "invalid-array"),
            {
                "ranges of fewer columns": lambda p: forger.seal(p, 0, narrow),
                "ranges that are too large": lambda p: forger.seal(p, 0, wide),
            },
        ),
        ("project", 0, _FAILED, {"no ranges": drop_envelopes}),
    )


def of_two_runs(forger: Forger) -> list[Refusal]:
    """Return the refusals in a session of two runs."""

    def figures(packet: Packet) -> list[object]:
        return list(packet.header.record["values"]["figures"])

    def other(packet: Packet) -> int:
        return 1 - int(packet.header.record["values"]["chosen"])

    return forger.refuse(
        (
            *("conclude", 0, _FAILED),
            {
                "another run than the rule's": lambda p: _tell_choice(
                    p, chosen=other(p)
                ),
                "a run that there is not": lambda p: _tell_choice(p, chosen=2),
                "figures of one run": lambda p: _tell_choice(p, figures=figures(p)[:1]),
            },
        ),
        (
            *("conclude", 0, "task-refused"),
            {
                "others were told of another run": lambda p: set_values(
                    p, chosen=other(p)
                )
            },
        ),
    )


# Sessions over linked rows

_N_LISTED = 11


def of_linked_rows(forger: Forger, n_keys: int) -> list[Refusal]:
    """Return the refusals by one of two members, whose rows are linked by keys or ids."""
    counts = {"north": 10, "south": 9}
    points = np.zeros((n_keys, _N_LISTED, 32), np.uint8)
    early = MaskedKeys(points=points, n_masks=2)
    few = MaskedKeys(points=points[:, :-1], n_masks=1)
    more_keys = MaskedKeys(points=np.tile(points, (2, 1, 1)), n_masks=1)

    def put(packet: Packet, place: int) -> Packet:
        rows = packet.arrays["rows"].copy()
        rows[0] = place
        return set_arrays(packet, rows=rows)

    return forger.refuse(
        (
            *("show-tokens", 0, "envelope-refused"),
            {
                "the list of the neighbour before is withheld": drop_envelopes,
                "a list that was masked twice": lambda p: forger.seal(p, 0, early),
            },
        ),
        (
            *("show-tokens", 0, "invalid-array"),
            {
                "a list of fewer rows": lambda p: forger.seal(p, 0, few),
                "a list of more keys": lambda p: forger.seal(p, 0, more_keys),
            },
        ),
        (
            *("select-linked", 0, _FAILED),
            {
                "a place that the list has not": lambda p: put(p, _N_LISTED),
                "a place that comes twice": lambda p: put(p, p.arrays["rows"][1]),
                "numbers of rows differ": lambda p: announce(
                    set_values(p, n_rows=counts)
                ),
            },
        ),
    )


# Sessions of `llf`

_FIRST_ROUND = 8
"""The round before the first update."""
_PLACES = {"sum_0": 0, "sum_1": 3, "count_0": 9, "count_1": 10}
"""Places of words in a total: sums of the first column, and counts, of two clusters."""
_OF_FIRST_RUN = 7
"""The updates of the first of two runs."""


def of_runs_of_rows(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members, in a session of two runs."""
    start = StartCentroids(centroids=np.zeros((2, 3)))
    one = StartCentroids(centroids=start.centroids[:1])
    far = StartCentroids(centroids=start.centroids + 1e101)
    proposal = forger.task("propose", 0)
    round_ = forger.task("update", _OF_FIRST_RUN).address.round
    of_second_run = FalsifiedSum(ColumnSecret, "update/1", round_)
    return forger.refuse(
        (
            *("settle", 0, "task-refused"),
            {"an attempt in the other run": lambda _: repeat(proposal, "start-2")},
        ),
        (
            *("confirm", 0, "invalid-array"),
            {
                "a start of one cluster": lambda p: forger.seal(p, 0, one),
                "a start that is too far away": lambda p: forger.seal(p, 0, far),
            },
        ),
        (
            *("update", 1, _FAILED),
            {
                "the third update second": lambda p: announce(set_values(p, number=3)),
                "an update of other rows": lambda p: raise_item(p, "totals", (0, 0), 1),
                "an end before the rest": lambda p: announce(
                    set_line(rename_record(p, "close", without="number"), asks="close")
                ),
            },
        ),
        (
            *("gather", 0, _FAILED),
            {"a closing of other rows": lambda p: raise_item(p, "closing", 0, 1)},
        ),
        (
            *("tell", 0, _FAILED),
            {"sizes of other rows": lambda p: raise_item(p, "gathered", 0, 1)},
        ),
        (
            *("update", _OF_FIRST_RUN + 1, _FAILED),
            {
                "a first total of other rows than the other run's": lambda p: (
                    forger.falsify(p, "totals", of_second_run, {0: 1000})
                )
            },
        ),
    )


def of_columns(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members that hold columns."""

    def mark(packet: Packet, label: int, n_rows: int | None = 1) -> Packet:
        """Return a packet in which the first rows, or all, have a label."""
        labels = packet.arrays["labels"].copy()
        labels[:n_rows] = label
        return announce(set_arrays(packet, labels=labels))

    def drop_row(packet: Packet) -> Packet:
        return announce(set_arrays(packet, labels=packet.arrays["labels"][:-1]))

    return forger.refuse(
        (
            *("start-from", 0, _FAILED),
            {
                "a start from no row": lambda p: mark(p, 0, None),
                "starts of a fourth cluster": lambda p: mark(p, 3),
                "starts of fewer rows": drop_row,
            },
        ),
        (
            *("measure", 1, _FAILED),
            {
                "the first distances again": lambda p: announce(
                    set_values(p, number=1)
                ),
                "a row in a fourth cluster": lambda p: mark(p, 3),
            },
        ),
        ("measure", 1, "invalid-array", {"labels of fewer rows": drop_row}),
        (
            *("scatter", 0, _FAILED),
            {"a final label of a fourth cluster": lambda p: mark(p, 3)},
        ),
        ("scatter", 0, "invalid-array", {"final labels of fewer rows": drop_row}),
    )


def of_given_start(forger: Forger) -> list[Refusal]:
    """Return the refusals of totals by the first of three, from given centroids."""
    first = forger.task("update", 1).arrays["totals"]
    none = {"updates": (0, 3), "cohorts": (0, 3), "totals": (0, first.shape[1])}

    def leave_out(packet: Packet) -> Packet:
        cohorts = packet.arrays["cohorts"].copy()
        cohorts[0, 0] = 0
        return set_arrays(packet, cohorts=cohorts)

    def falsify(number: int, **by: int) -> Change:
        """Return a change of the total of an update, though its tag is right."""
        of = FalsifiedSum(ColumnSecret, f"update/{number}", _FIRST_ROUND + number)
        places = {_PLACES[name]: value for name, value in by.items()}
        return lambda packet: forger.falsify(packet, "totals", of, places)

    def of_sum(name: str, place: int, by: int) -> Change:
        return lambda packet: raise_item(packet, name, place, by)

    far = 1 << 44
    refusals = forger.refuse(
        (
            *("update", 1, _FAILED),
            {
                "a word of a total is one more": lambda p: raise_item(
                    p, "totals", (0, 0), 1
                ),
                "the tag of a total is one more": lambda p: raise_item(
                    p, "totals", (0, -1), 1
                ),
                "a total of another round": lambda p: raise_item(
                    p, "updates", (0, 1), -1
                ),
                "a total of another number": lambda p: raise_item(
                    p, "updates", (0, 0), 1
                ),
                "a total without one party": leave_out,
                "no total": lambda p: set_arrays(
                    p,
                    **{
                        name: p.arrays[name][:0].reshape(to)
                        for name, to in none.items()
                    },
                ),
            },
        ),
        (
            *("update", 2, _FAILED),
            {"the total of the update before": lambda p: set_arrays(p, totals=first)},
        ),
        (
            *("update", 1, "invalid-array"),
            {
                "a total without its tag": lambda p: cut_array(p, "totals"),
                "an array that nobody knows": lambda p: announce(
                    set_arrays(p, x=np.eye(1))
                ),
            },
        ),
        (
            *("update", 1, _FAILED),
            {
                "one row too many": falsify(1, count_0=1),
                "fewer rows than none": falsify(1, count_0=-60, count_1=60),
                "fewer rows than the party's own": falsify(1, count_0=-17, count_1=17),
            },
        ),
        (
            *("update", 2, _FAILED),
            {
                "sums of other rows": falsify(2, sum_0=1000),
                "rows that went farther away": falsify(2, sum_0=far, sum_1=-far),
            },
        ),
    )
    for kind, name, stem in (
        ("gather", "closing", "closed"),
        ("tell", "gathered", "gathered"),
    ):
        refusals += forger.refuse(
            (
                *(kind, 0, _FAILED),
                {
                    f"a word of {name} is one more": of_sum(name, 0, 1),
                    f"the tag of {name} is one more": of_sum(name, -1, 1),
                    f"{name} of two parties alone": of_sum(f"{stem}_by", 0, 255),
                    f"a round of {name} that was another": of_sum(f"{stem}_in", 0, 1),
                },
            ),
            (
                *(kind, 0, "invalid-array"),
                {f"{name} without its tag": partial(cut_array, name=name)},
            ),
        )
    return refusals

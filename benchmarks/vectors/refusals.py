"""Messages of recorded sessions at which a party must stop."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.vectors.forgery import (
    RESULT,
    Edit,
    Forger,
    announced,
    ask_for,
    cut_array,
    drop_envelopes,
    drop_last_byte,
    edit,
    extend_header,
    flip_bit,
    move,
    raise_item,
    relabel,
    rename_record,
    repeat,
    set_address,
    set_arrays,
    set_items,
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
from clustering_protocols.shared_stages.secrets import GroupSecret
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.shared_stages.statistics.ranges import PooledRanges

_OTHER = "ab" * 32
_FAILED = "protocol-failed"


# Sessions of `dummy`


def of_dummy(forger: Forger) -> list[Refusal]:
    """Return the refusals by the second of three parties."""
    word = messages.Word(word=np.array([7], np.uint64))
    labels = forger.result.arrays["labels"]
    two_runs = [Figures(n_clusters=3).model_dump()] * 2
    too_early = announced(
        ask_for("closing", "conclude"), set_values(figures=[], chosen=0)
    )
    return forger.refuse(
        {
            ("sign", 0, "agreement-mismatch"): {
                "of another session": set_address(session="other"),
                "of another agreement": set_address(agreement=_OTHER),
                "for another slot": set_address(slot="west"),
            },
            ("sign", 0, "malformed"): {
                "of a stage that there is not": set_address(stage="upload"),
                "a kind that the stage has not": set_kind("greet"),
                "without its last byte": drop_last_byte,
                "with more in its header": extend_header,
            },
            # the lines of the transcript
            ("sign", 0, "task-refused"): {
                "lines of another agreement": _name_another_agreement,
            },
            ("greet", 0, "task-refused"): {
                "another past": set_line(previous=_OTHER),
                "a line was left out": set_line(number=4),
                "a round was left out": move(round=3),
                "the line is of another stage": set_line(stage="count"),
                "the line asks something else": set_line(asks="count"),
                "the line leaves the party out": set_line(left_out=["south"]),
                "others were told otherwise": set_line(told=[_OTHER]),
                "no line at all": lambda packet: replace(packet, history=[]),
                # the order of tasks
                "a stage was left out": ask_for("count", "count"),
            },
            ("confirm", 0, "task-refused"): {
                "a task that was answered": ask_for("count", "count"),
                "a stage that is over": ask_for("greeting", "greet"),
                "a task that comes too early": too_early,
            },
            # signatures
            ("greet", 0, _FAILED): {
                "a signature of the opening is missing": _blank_last_signature,
                "two signatures were exchanged": _exchange_signatures,
                "no signature came": _drop_signatures,
            },
            # envelopes
            ("count", 0, "envelope-refused"): {
                "a bit of an envelope": flip_bit,
                "another sender on the label": relabel(peer="west"),
                "a sender that there is not": relabel(peer="east"),
                "another kind on the label": relabel(kind="greet"),
                "another stage on the label": relabel(stage="count"),
                "a stage that seals nothing": relabel(stage="opening"),
                "an earlier round on the label": relabel(round=1),
                "the round of the task on the label": relabel(round=3),
                "another attempt on the label": relabel(attempt=2),
            },
            ("count", 0, _FAILED): {"a word is withheld": drop_envelopes},
            ("confirm", 0, _FAILED): {"another word comes back": forger.seal(word)},
        },
        {
            # content
            ("confirm", 0, "task-refused"): {
                "another number than others were told": set_values(total=34),
            },
            ("confirm", 0, _FAILED): {
                "another number of rows": announced(set_values(total=34)),
            },
            ("confirm", 0, "malformed"): {
                "a number that is a text": announced(set_values(total="33")),
                "a value that nobody knows": announced(set_values(more=1)),
            },
            ("confirm", 0, "invalid-array"): {
                "an array that nobody knows": announced(set_arrays(x=np.eye(1))),
            },
            # the closing and the result
            ("conclude", 0, _FAILED): {
                "a second run": _alter_closing(chosen=1),
                "figures of two runs": _alter_closing(figures=two_runs),
            },
            ("conclude", 0, "task-refused"): {
                "others were told of another run": set_values(chosen=1),
            },
            (RESULT, 0, _FAILED): {
                "a signature of the closing is missing": _blank_last_signature,
                "no signature of the closing": _drop_signatures,
            },
            (RESULT, 0, "task-refused"): {
                "another result than was told": set_arrays(labels=labels[::-1]),
            },
            (RESULT, 0, "invalid-array"): {
                "a label below zero": set_arrays(labels=labels - 1),
            },
            (RESULT, 0, "malformed"): {
                "a kind that is no result": set_kind("greet"),
            },
        },
    )


def of_second_attempt(forger: Forger) -> list[Refusal]:
    """Return the refusals in the second attempt of a round."""
    again = repeat(forger.task("sign", 0), "closing")
    return forger.refuse(
        {
            ("greet", 0, "malformed"): {
                "the opening again, as the closing": lambda _: again,
            },
            ("count", 1, "task-refused"): {
                "an attempt was left out": move(attempt=3),
                "an attempt without what came in the one before": drop_envelopes,
            },
        }
    )


@edit
def _alter_closing(packet: Packet, /, **values: Any) -> Packet:
    """Return the closing with other values, which the first group was told."""
    said = set_values(**values)(packet)
    told = json.loads(packet.history[-1])["told"]
    digest = packets.digest_content(said.header.record, said.arrays)
    return set_line(told=[digest, *told[1:]])(said)


def _name_another_agreement(packet: Packet) -> Packet:
    first, *lines = packet.history
    changed = first.replace(packet.address.agreement, _OTHER)
    return replace(packet, history=[changed, *lines])


def _blank_last_signature(packet: Packet) -> Packet:
    signatures = packet.signatures.copy()
    signatures[-1] = 0
    return replace(packet, signatures=signatures)


def _exchange_signatures(packet: Packet) -> Packet:
    return replace(packet, signatures=packet.signatures[[1, 0, 2]])


def _drop_signatures(packet: Packet) -> Packet:
    return replace(packet, signatures=packet.signatures[:0])


# Sessions of `dc`


def of_adding_member(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members, who add up."""
    own = GroupSecret(scope="row", secret=_OTHER)
    digests = Digests(rows=_OTHER, columns=_OTHER)
    total = forger.task("add-up", 2).arrays["total"]
    labels = forger.result.arrays["labels"]
    other_total = set_arrays(total=total + np.uint64(1))
    return forger.refuse(
        {
            ("compare-digests", 0, "envelope-refused"): {
                "a secret is withheld": drop_envelopes,
                "a secret of a group that its sender does not lead": forger.seal(own),
            },
            ("add-up", 0, "envelope-refused"): {
                "the leader's digests are withheld": drop_envelopes,
            },
            ("add-up", 0, _FAILED): {
                "the leader holds other columns": forger.seal(digests),
            },
            ("add-up", 2, "task-refused"): {
                "a total of which others were told otherwise": other_total,
            },
            ("add-up", 2, _FAILED): {
                "a word of a total is one more": raise_item("total", 0, 1),
                "the tag of a total is one more": raise_item("total", -1, 1),
                "the tag is p more": raise_item("total", -1, P),
                "a phase was left out": announced(set_values(phase=4)),
            },
            ("add-up", 2, "invalid-array"): {
                "a total without its tag": cut_array("total"),
            },
            ("conclude", 0, "task-refused"): {
                "a second upload": ask_for("upload", "project"),
            },
            (RESULT, 0, "task-refused"): {
                "labels of fewer rows": set_arrays(labels=labels[:-1]),
            },
        }
    )


def of_pair(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of two members, who pool ranges through their leader."""
    pooled = PooledRanges(minimum=np.zeros(3), maximum=np.ones(3))
    narrow = PooledRanges(minimum=np.zeros(2), maximum=np.ones(2))
    wide = pooled.replace(maximum=np.full(3, 1e101))
    return forger.refuse(
        {
            ("project", 0, "invalid-array"): {
                "ranges of fewer columns": forger.seal(narrow),
                "ranges that are too large": forger.seal(wide),
            },
            ("project", 0, _FAILED): {"no ranges": drop_envelopes},
        }
    )


def of_two_runs(forger: Forger) -> list[Refusal]:
    """Return the refusals in a session of two runs."""
    values = forger.task("conclude", 0).header.record["values"]
    first, other = values["figures"][:1], 1 - values["chosen"]
    return forger.refuse(
        {
            ("conclude", 0, _FAILED): {
                "another run than the rule's": _alter_closing(chosen=other),
                "a run that there is not": _alter_closing(chosen=2),
                "figures of one run": _alter_closing(figures=first),
            },
            ("conclude", 0, "task-refused"): {
                "others were told of another run": set_values(chosen=other),
            },
        }
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
    second = forger.task("select-linked", 0).arrays["rows"][1]
    return forger.refuse(
        {
            ("show-tokens", 0, "envelope-refused"): {
                "the list of the neighbour before is withheld": drop_envelopes,
                "a list that was masked twice": forger.seal(early),
            },
            ("show-tokens", 0, "invalid-array"): {
                "a list of fewer rows": forger.seal(few),
                "a list of more keys": forger.seal(more_keys),
            },
            ("select-linked", 0, _FAILED): {
                "a place that the list has not": set_items("rows", 0, _N_LISTED),
                "a place that comes twice": set_items("rows", 0, second),
                "numbers of rows differ": announced(set_values(n_rows=counts)),
            },
        }
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
    again = repeat(forger.task("propose", 0), "start-2")
    close = announced(rename_record("close", without="number"), set_line(asks="close"))
    round_ = forger.task("update", _OF_FIRST_RUN).address.round
    other_rows = forger.falsify("update/1", round_, {0: 1000})
    return forger.refuse(
        {
            ("settle", 0, "task-refused"): {
                "an attempt in the other run": lambda _: again,
            },
            ("confirm", 0, "invalid-array"): {
                "a start of one cluster": forger.seal(one),
                "a start that is too far away": forger.seal(far),
            },
            ("update", 1, _FAILED): {
                "the third update second": announced(set_values(number=3)),
                "an update of other rows": raise_item("totals", (0, 0), 1),
                "an end before the rest": close,
            },
            ("gather", 0, _FAILED): {
                "a closing of other rows": raise_item("closing", 0, 1),
            },
            ("tell", 0, _FAILED): {
                "sizes of other rows": raise_item("gathered", 0, 1),
            },
            ("update", _OF_FIRST_RUN + 1, _FAILED): {
                "a first total of other rows than the other run's": other_rows,
            },
        }
    )


def of_columns(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members that hold columns."""
    no_row = announced(set_items("labels", slice(None), 0))
    fourth = announced(set_items("labels", 0, 3))
    drop_row = cut_array("labels")
    return forger.refuse(
        {
            ("start-from", 0, _FAILED): {
                "a start from no row": no_row,
                "starts of a fourth cluster": fourth,
                "starts of fewer rows": drop_row,
            },
            ("measure", 1, _FAILED): {
                "the first distances again": announced(set_values(number=1)),
                "a row in a fourth cluster": fourth,
            },
            ("measure", 1, "invalid-array"): {"labels of fewer rows": drop_row},
            ("scatter", 0, _FAILED): {"a final label of a fourth cluster": fourth},
            ("scatter", 0, "invalid-array"): {"final labels of fewer rows": drop_row},
        }
    )


def of_given_start(forger: Forger) -> list[Refusal]:
    """Return the refusals of totals by the first of three, from given centroids."""
    arrays = forger.task("update", 1).arrays
    first = arrays["totals"]
    none = {name: arrays[name][:0] for name in ("updates", "cohorts", "totals")}

    def falsify(number: int, **by: int) -> Edit:
        """Return an edit of the total of an update, though its tag is right."""
        raised = {_PLACES[name]: value for name, value in by.items()}
        return forger.falsify(f"update/{number}", _FIRST_ROUND + number, raised)

    far = 1 << 44
    refusals = forger.refuse(
        {
            ("update", 1, _FAILED): {
                "a word of a total is one more": raise_item("totals", (0, 0), 1),
                "the tag of a total is one more": raise_item("totals", (0, -1), 1),
                "a total of another round": raise_item("updates", (0, 1), -1),
                "a total of another number": raise_item("updates", (0, 0), 1),
                "a total without one party": set_items("cohorts", (0, 0), 0),
                "no total": set_arrays(**none),
            },
            ("update", 2, _FAILED): {
                "the total of the update before": set_arrays(totals=first),
            },
            ("update", 1, "invalid-array"): {
                "a total without its tag": cut_array("totals"),
                "an array that nobody knows": announced(set_arrays(x=np.eye(1))),
            },
        },
        {
            ("update", 1, _FAILED): {
                "one row too many": falsify(1, count_0=1),
                "fewer rows than none": falsify(1, count_0=-60, count_1=60),
                "fewer rows than the party's own": falsify(1, count_0=-17, count_1=17),
            },
            ("update", 2, _FAILED): {
                "sums of other rows": falsify(2, sum_0=1000),
                "rows that went farther away": falsify(2, sum_0=far, sum_1=-far),
            },
        },
    )
    for kind, name, stem in (
        ("gather", "closing", "closed"),
        ("tell", "gathered", "gathered"),
    ):
        other_round = raise_item(f"{stem}_in", 0, 1)
        refusals += forger.refuse(
            {
                (kind, 0, _FAILED): {
                    f"a word of {name} is one more": raise_item(name, 0, 1),
                    f"the tag of {name} is one more": raise_item(name, -1, 1),
                    f"{name} of two parties alone": raise_item(f"{stem}_by", 0, 255),
                    f"a round of {name} that was another": other_round,
                },
                (kind, 0, "invalid-array"): {
                    f"{name} without its tag": cut_array(name),
                },
            }
        )
    return refusals

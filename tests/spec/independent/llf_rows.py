"""Section 12, llf: a member of the sums over rows."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import degrees, figures
from .centroids import nearest, order_clusters, round_means, sums_and_counts
from .derivations import Refusal, Words, fixed_point, group_key
from .kinds import Record
from .llf_state import CLOSING, UPDATE, Here, Known
from .order import Memory, Reply, Role, View

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Member(Role):
    """Section 12, llf: a member of the sums."""

    params: Mapping[str, Any]

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, llf: answer a task."""
        members = task.values["members"]
        self._check_members(view, members)
        here = Here.of(view, self.params)
        known = here.follow(task)
        if task.kind == "update":
            self._check_number(view, task.values["number"], known)
            return _update(here, known, members)
        if known.number < self.params["max_iter"] and not here.may_stop(known):
            raise Refusal("protocol-failed")
        remember: Memory = {"V": known, "final": find_final(here, known)}
        if task.kind == "close":
            words = _closing_words(here, remember["final"])
            name = f"closing/{known.number}"
            return Reply(here.add("closing", words, name, members), remember=remember)
        if task.kind == "gather":
            words, name = _around_words(here, task, known), f"gathered/{known.number}"
            return Reply(here.add("gathered", words, name, members), remember=remember)
        told = _tell(here, task, known)
        return replace(told, remember={**remember, **told.remember})

    def _check_members(self, view: View, members: list[str]) -> None:
        """Section 12, llf, order and quorum: who adds up."""
        slots, quorum = view.session.slots, self.params["quorum"]
        known = [slot for slot in slots if slot in members]
        least = 2 if self.params["allow_two_parties"] else 3
        if members != known or view.session.slot not in members or len(members) < least:
            raise Refusal("guard-refused")
        if len(members) < (quorum or len(slots)):
            raise Refusal("protocol-failed")

    @staticmethod
    def _check_number(view: View, number: int, known: Known) -> None:
        """Section 12, llf, order: an update that follows."""
        asked = max(known.own, default=0)
        due = number == known.number + 1 == view.rounds["update"]
        if not due or number <= asked:
            raise Refusal("protocol-failed")


def find_final(here: Here, known: Known) -> NDArray[Any]:
    """Section 12, llf, result: labels by the nearest centroid, found once."""
    final = here.view.memory.get("final")
    return nearest(here.rows(), known.V) if final is None else final


def _update(here: Here, known: Known, members: list[str]) -> Reply:
    """Section 12, llf, sums: the contribution to an update."""
    number = known.number + 1
    words, own = update_words(here, known.V)
    record = here.add("sums", words, f"update/{number}", members)
    leads = members[0] == here.view.session.slot
    record.values |= {"moved": None, "stop": leads and here.stops(known)}
    if leads and known.moved is not None:
        record.values["moved"] = float(f"{known.moved:.2g}")
    record.arrays["start"] = np.zeros((0, known.V.shape[1]))
    return Reply(record, remember={"V": replace(known, own={number: own})})


def update_words(here: Here, V: Floats) -> tuple[Words, Floats]:
    """Section 12, llf, sums and degrees: the words of an update; own counts."""
    Z, units = here.rows(), here.units(UPDATE)
    if not here.fuzzy:
        labels = nearest(Z, V)
        words = sums_and_counts(_add_up(here, np.rint(Z * units), labels), labels)
        return words, np.bincount(labels, minlength=len(V))
    F, fuzzifier = V.shape[1], here.params["fuzzifier"]
    k_all = sum(here.view.session.runs)
    if len(Z) <= here.params["n_init"] * k_all * (F + 1) / F:
        raise Refusal("guard-refused")
    D = degrees.squared_distances(Z, V)
    W = degrees.raise_degrees(degrees.find_degrees(D, fuzzifier), fuzzifier)
    of_sums = np.rint(W[:, :, None] * Z[:, None] * units).sum(axis=0)
    own = np.rint(W * here.degree_unit()).sum(axis=0)
    words = np.append(of_sums.reshape(-1), own).astype(np.int64).view(np.uint64)
    return words, own / here.degree_unit()


def _closing_words(here: Here, labels: NDArray[Any]) -> Words:
    """Section 12, llf, sums: the words of the closing."""
    sums = _add_up(here, here.rows(), labels)
    return sums_and_counts(sums * here.units(CLOSING), labels)


def _add_up(here: Here, terms: Floats, labels: NDArray[Any]) -> Floats:
    """Section 12, llf, sums: sums by cluster."""
    return np.array([terms[labels == c].sum(axis=0) for c in range(here.k)])


def _around_words(here: Here, task: Record, known: Known) -> Words:
    """Section 12, llf, around the means: the words."""
    means, counts = here.means(task, known)
    Z, k = here.rows(), here.k
    labels = nearest(Z, known.V)
    squares, far, total = np.zeros(k), np.zeros(k), 0.0
    for row, label in zip(Z, labels, strict=True):
        D = np.square(row - means).sum(axis=1)
        squares[label] += D[label]
        far[label] += np.sqrt(D[label])
        others = [np.sqrt(D[c]) for c in range(k) if c != label and counts[c] > 0]
        a, b = np.sqrt(D[label]), min(others, default=np.inf)
        if counts[label] > 1 and max(a, b) > 0 and np.isfinite(b):
            total += (b - a) / max(a, b)
    reals = np.array([*squares, *far, total, *_around_centroids(here, Z, known.V)])
    _, words = fixed_point(here.bounds(means, known.V), CLOSING, reals)
    sizes = np.bincount(labels, minlength=k).astype(np.uint64)
    return np.append(sizes, words)


def _around_centroids(here: Here, Z: Floats, V: Floats) -> list[float]:
    """Section 12, llf, degrees: the reals that fuzzy c-means adds."""
    if not here.fuzzy:
        return []
    D = degrees.squared_distances(Z, V)
    U = np.square(degrees.find_degrees(D, here.params["fuzzifier"]))
    return [float((U * D).sum()), float(U.sum())]


def _tell(here: Here, task: Record, known: Known) -> Reply:
    """Section 12, llf, mark: the digest, and what the first slot publishes."""
    means, counts = here.means(task, known)
    sizes, reals = here.around(task, known, means)
    said = known.number.to_bytes(8, "big") + known.V.astype("<f8").tobytes()
    mark = sha256(said).digest() + sizes.astype("<i8").tobytes()
    secret = bytes.fromhex(here.view.recall("secret/column"))
    key = group_key(secret, here.view.session.agreement, "told")
    values: Memory = {
        "digest": hmac.new(key, mark, sha256).hexdigest(),
        "n_updates": known.number,
        "n_coinciding": None,
        "figures": None,
    }
    shown = publish(here, known, means, counts, sizes)
    described = _describe(here, known, means, sizes, reals)
    order = find_order(here, known, sizes, shown)
    remember = {"numbers": order, "figures": described}
    if task.values["members"][0] != here.view.session.slot:
        return Reply(Record("told", values, _nothing(shown)), remember=remember)
    if here.params["publish"] != "nothing":
        values["figures"] = described
        values["n_coinciding"] = here.k - len(np.unique(known.V, axis=0))
    return Reply(Record("told", values, shown), remember=remember)


def _describe(
    here: Here, known: Known, means: Floats, sizes: NDArray[Any], reals: Floats
) -> dict[str, Any]:
    """Section 12, llf, figures: all of them."""
    k = here.k
    found = figures.describe(
        sizes.astype(np.float64),
        reals[:k],
        reals[k : 2 * k],
        float(reals[2 * k]),
        means,
        (known.V, *reals[2 * k + 1 :]) if here.fuzzy else None,
    )
    return {**found, "n_iter": known.number, "converged": here.stops(known)}


def publish(
    here: Here, known: Known, means: Floats, counts: Floats, sizes: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Section 12, llf, mark: what the first slot says of large clusters."""
    centres = known.V if here.fuzzy else means
    how = here.params["publish"]
    large = np.flatnonzero(sizes >= here.params["min_cluster_rows"])
    large = large[:0] if how == "nothing" else large
    told = large if how == "centroids" else large[:0]
    return {
        "clusters": large.astype(np.int64),
        "centroids": _round(here, centres[told], counts[told]),
        "sizes": np.maximum(5 * np.rint(sizes[large] / 5), 5).astype(np.int64),
    }


def _nothing(shown: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Section 12, llf, mark: what others say."""
    return {name: array[:0] for name, array in shown.items()}


def _round(here: Here, means: Floats, counts: Floats) -> Floats:
    """Section 12, llf, mark: means of large clusters, in round steps."""
    scale = here.scale
    spreads = scale.step / scale.factor
    return round_means(means / scale.factor + scale.offset, counts, spreads)


def find_order(
    here: Here, known: Known, sizes: NDArray[Any], shown: Mapping[str, NDArray[Any]]
) -> list[int]:
    """Section 12, llf, result: clusters in the order of their new numbers."""
    everything = list(range(here.k))
    if here.params["init"] == "given":
        return everything
    if here.params["publish"] == "nothing":
        return order_clusters(everything, sizes, known.V)
    told, centroids = shown["clusters"].tolist(), shown["centroids"]
    by = centroids if here.params["publish"] == "centroids" else known.V[told]
    others = [c for c in everything if c not in told]
    none = np.zeros(len(others), np.int64)
    return [
        *order_clusters(told, shown["sizes"], by),
        *order_clusters(others, none, known.V[others]),
    ]

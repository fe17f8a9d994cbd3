"""What one use of rows discloses, and to which readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import permutations
from typing import Final

from pydantic import BaseModel, ConfigDict

from clustering_protocols.contract.disclosures import (
    REFUSED,
    SENTENCES,
    Kind,
    Reader,
    kinds_read_by,
)
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.session_terms import check_terms, disclosures_of_terms
from clustering_protocols.shared_stages.row_selection import shares_rows
from clustering_protocols.terms.terms import Terms

_IN_PAIRS: Final = frozenset[Kind]().union(*REFUSED)
"""Kinds of disclosure that a reader may combine with another one."""


class Use(BaseModel):
    """What one party discloses about its rows in one session.

    session: the session and the digest of its agreement. Uses of one session are not
        compared with each other, because its terms say what its slots disclose
        together.
    slot: the party's slot.
    analyst, coordinator: their public keys; None for an unknown key.
    outside: kinds of disclosure to the analyst and the coordinator.
    parties: public keys of the other parties; an empty text for a slot that any
        institution may take.
    everybody: kinds of disclosure to every party, even to one that does not hold the
        variable.
    way: the digest of the protocol and the clustered columns.
    sums: whether anybody reads sums or means of rows.
    published: whether the analyst and the coordinator read means of clusters, or
        parties sum cluster profiles.
    smallest: the fewest rows of a published cluster.
    intersects: whether this use discloses which rows are common, and nothing else.
    counts: whether this use discloses only the number of common rows.
    epsilon: the privacy cost for each person.
    degrees: the number of equations in sums of membership degrees, for each unknown
        value in the other parties' rows.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="strings")

    session: str
    slot: str
    analyst: str | None = None
    coordinator: str | None = None
    outside: frozenset[Kind] = frozenset()
    parties: frozenset[str] = frozenset()
    everybody: frozenset[Kind] = frozenset()
    way: str = ""
    sums: bool = False
    published: bool = False
    smallest: int = 1
    intersects: bool = False
    counts: bool = False
    epsilon: float = 0.0
    degrees: float = 0.0

    @classmethod
    def from_terms(
        cls, terms: Terms, session: str, slot: str, columns: Iterable[str]
    ) -> Use:
        """Return a party's disclosures under checked terms.

        columns: the table's columns; those that are only described in profiles do not
            count.
        """
        disclosures, params = disclosures_of_terms(terms), check_terms(terms)
        outside = kinds_read_by(disclosures, Reader.OUTSIDE)
        adds_up = terms.layout.can_pool(terms.layout.slot(slot).column)
        clustered = set(columns).difference(terms.described_names(slot))
        words = length_prefixed(terms.protocol.name, *sorted(clustered))
        smallest = params.min_published_rows
        if terms.release is not None:
            smallest = max(smallest, terms.release.min_cluster_rows)
        return cls(
            session=session,
            slot=slot,
            analyst=terms.identities.analyst,
            coordinator=terms.identities.coordinator,
            outside=outside,
            parties=_other_parties(terms, slot),
            everybody=kinds_read_by(disclosures, Reader.ALL) & _IN_PAIRS,
            way=sha256(words).hexdigest(),
            sums=any(
                disclosure.kind in {Kind.MEANS, Kind.SUMS} for disclosure in disclosures
            ),
            published=Kind.MEANS in outside or (terms.release is not None and adds_up),
            smallest=smallest,
        )

    @classmethod
    def intersection(cls, terms: Terms, session: str, slot: str) -> Use | None:
        """Return what a party discloses by linking its rows; None if it sends none."""
        params = check_terms(terms)
        if not (params.selects_rows and shares_rows(terms, slot)):
            return None
        return cls(
            session=session,
            slot=slot,
            coordinator=terms.identities.coordinator,
            intersects=True,
            counts=params.counts_linked,
        )

    @property
    def name(self) -> str:
        """Return the digest (hex) under which the use is stored."""
        subject = "ids" if self.intersects else "rows"
        words = length_prefixed(self.session, self.slot, subject)
        return sha256(words).hexdigest()[:32]

    @property
    def discloses_anything(self) -> bool:
        """Return whether anything about the rows is disclosed."""
        return bool(self.outside or self.everybody or self.published or self.sums)

    def readers_of(self, kind: Kind) -> frozenset[str]:
        """Return the public keys of the readers of a kind; an unknown key is empty."""
        readers: frozenset[str] = frozenset()
        if kind in self.outside:
            readers |= {self.analyst or "", self.coordinator or ""}
        return readers | self.parties if kind in self.everybody else readers

    def questions_after(self, before: Use) -> Iterator[str]:
        """Yield a question for each pair of disclosures that one reader could combine.

        before: an earlier use of the same rows.
        """
        if before.session == self.session:
            return
        for earlier_kind, later_kind in (
            order for pair in REFUSED for order in permutations(pair)
        ):
            if _may_share_reader(
                before.readers_of(earlier_kind), self.readers_of(later_kind)
            ):
                yield (
                    f"Of these rows, an earlier session showed {SENTENCES[earlier_kind]}. Its "
                    "analyst, coordinator or a party now gets "
                    f"{SENTENCES[later_kind]}: from both it can compute the rows."
                )
        geometry = (use.readers_of(Kind.GEOMETRY) for use in (before, self))
        if before.way != self.way and _may_share_reader(*geometry):
            yield (
                "The same analyst or coordinator got these rows up to a motion from another "
                "protocol, or with other columns: together they show more of each row."
            )


def _may_share_reader(keys: frozenset[str], other_keys: frozenset[str]) -> bool:
    """Return whether two groups overlap, or may overlap because a key is unknown."""
    is_open = "" in keys | other_keys
    return bool(keys and other_keys) if is_open else bool(keys & other_keys)


def _other_parties(terms: Terms, own: str) -> frozenset[str]:
    expected = terms.identities.slots
    keys = {expected.get(slot, "") for slot in terms.layout.names if slot != own}
    return frozenset(keys - {expected.get(own, None)})

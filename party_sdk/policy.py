"""What a party agrees to: its guards, on by default, checked before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering_protocols.errors import GuardRefused, RiskNotAccepted

if TYPE_CHECKING:
    from clustering_protocols.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A party's own rules; the terms of a session can only be stricter.

    Attributes
    ----------
    accepted_risks : frozenset of str
        Risk codes that this party has read and accepts.
    protocols : frozenset of str, optional
        Protocols that it takes part in; None for all.
    minimum_rows : int
        Fewest rows of this party.
    """

    accepted_risks: frozenset[str] = frozenset()
    protocols: frozenset[str] | None = None
    minimum_rows: int = 10

    def check_terms(self, terms: Terms) -> None:
        """Refuse terms that this policy does not cover.

        Raises
        ------
        RiskNotAccepted
            With the code and the sentence of the first risk that is not accepted.
        GuardRefused, VersionMismatch, InvalidParameters
        """
        # not above: the help of the commands tells the defaults of a policy
        from clustering_protocols.registry import check_terms, risk_sentences

        check_terms(terms)
        name = terms.protocol.name
        if self.protocols is not None and name not in self.protocols:
            raise GuardRefused(f"Protocol {name!r} is not on the list 'protocols'.")
        for code in terms.risks:
            if code not in self.accepted_risks:
                raise RiskNotAccepted(f"{code}: {risk_sentences(name)[code]}")

    def check_rows(self, terms: Terms, n_rows: int) -> None:
        """Refuse to take part with too few rows; :class:`GuardRefused`."""
        needed = max(self.minimum_rows, terms.guards.minimum_rows)
        if n_rows < needed:
            raise GuardRefused(f"'minimum_rows' is {needed}; {n_rows} rows take part.")

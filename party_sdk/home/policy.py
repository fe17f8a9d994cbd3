"""A party's policy: limits that are checked before the party sends anything."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from clustering_protocols.common.errors import GuardRefused, RiskNotAccepted
from party_sdk.home.addresses import are_same_analyst, host_of

if TYPE_CHECKING:
    from clustering_protocols.terms.session_risks import Risk
    from clustering_protocols.terms.terms import Terms

_LEAST_KNOWN = 2
_DEFAULT_QUOTA: Final = 10.0
"""The default value of ``ids_per_row``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A party's own rules, which the terms of a session can tighten but not relax.

    accepted_risks: codes of the risks that this party has read and accepts.
    protocols: names of the protocols that the party takes part in; None for all.
    minimum_rows: the fewest rows with which the party takes part, and the fewest rows
        by which its sums in two sessions may differ.
    ids_per_row: the most ids per row of this party that another party of the row group
        may send when rows are aligned by ids. Every id may be a guess: whoever sends a
        town's register learns which inhabitants are patients here. The error states
        both numbers, so that the operator can admit such a register.
    intersections_limit: the most sessions of one coordinator in which a row is linked.
    least_known: the fewest other members with a trusted card or a confirmed safety
        number. The default is two, or all other members if there are fewer. Members in
        slots that the terms leave open count too.
    epsilon_limit, epsilon_total: the largest ε of differential privacy that one
        session, and all sessions, may cost each person. Answers without noise cost an
        infinite ε.
    coordinators: who may invite: names of trusted cards, or public keys; None for all.
    analysts: addresses of the analysts that may be contacted; None for all.
    largest_weight: the largest weight that the terms may give a field, relative to the
        smallest weight if that is below 1. If one field outweighs the others, the
        clusters depend on it almost alone.
    sums_limit: the largest proportion of this party's rows in a session that may be
        computable from the sums it sent in this session and in earlier ones over the
        same rows.
    """

    accepted_risks: frozenset[str] = frozenset()
    protocols: frozenset[str] | None = None
    minimum_rows: int = 10
    ids_per_row: float = _DEFAULT_QUOTA
    intersections_limit: int = 5
    least_known: int | None = None
    epsilon_limit: float | None = None
    epsilon_total: float | None = None
    coordinators: frozenset[str] | None = None
    analysts: frozenset[str] | None = None
    largest_weight: float | None = None
    sums_limit: float = 0.25

    def check_terms(self, terms: Terms) -> None:
        """Raise if this policy does not permit a session with these terms.

        Raises RiskNotAccepted, with the code and sentence of each risk that is not
        accepted. Raises GuardRefused, VersionMismatch or InvalidParameters for other
        reasons.
        """
        # imported here, because the commands' help needs only this class
        from clustering_protocols.session_terms import (
            check_new_session_terms,
            check_terms,
        )

        epsilon = check_terms(terms).epsilon_per_person
        for name in ("epsilon_limit", "epsilon_total"):
            limit = getattr(self, name)
            if limit is not None and epsilon > limit:
                raise GuardRefused(
                    f"The terms cost each person ε = {epsilon:.4g}"
                    f"{', because answers carry no noise' * math.isinf(epsilon)}; "
                    f"{name!r} is {limit:.4g}."
                )
        check_new_session_terms(terms)
        name = terms.protocol.name
        if self.protocols is not None and name not in self.protocols:
            raise GuardRefused(f"Protocol {name!r} is not on the list 'protocols'.")
        self._check_weights(terms)
        if refused := self.unaccepted_risks(terms):
            raise RiskNotAccepted(
                " ".join(f"{code}: {risk.sentence}" for code, risk in refused.items())
            )

    def _check_weights(self, terms: Terms) -> None:
        if self.largest_weight is None or not terms.preparation:
            return
        weights = {
            field.name: preparation.of(field).weight
            for schema, preparation in zip(
                terms.dictionary or (), terms.preparation, strict=True
            )
            for field in schema.clustered_part.fields
        }
        name = max(weights, key=lambda field_name: weights[field_name])
        minimum = min(weights.values())
        if weights[name] > self.largest_weight * min(minimum, 1.0):
            raise GuardRefused(
                f"The terms give {name!r} the weight {weights[name]:g}, and another "
                f"field {minimum:g}; 'largest_weight' is {self.largest_weight:g}."
            )

    def check_inviter(
        self, url: str, coordinator: str, keys_by_name: Mapping[str, str]
    ) -> None:
        """Raise GuardRefused if the policy does not list the analyst or coordinator.

        Parties call this before they contact the analyst.

        keys_by_name: the public key of each institution whose card is trusted.
        """
        if self.analysts is not None and not any(
            are_same_analyst(url, address) for address in self.analysts
        ):
            raise GuardRefused(
                f"The analyst at {host_of(url)} is not on the list 'analysts'. Add its "
                "address there, if your institution trusts it."
            )
        if self.coordinators is None:
            return
        keys = {keys_by_name.get(entry, entry) for entry in self.coordinators}
        if coordinator not in keys:
            names = ", ".join(sorted(self.coordinators)) or "nobody"
            raise GuardRefused(
                "This invitation is signed by a coordinator who is not on the list "
                f"'coordinators': {names}. A name counts once its card is trusted "
                "(coterie identity trust)."
            )

    def unaccepted_risks(self, terms: Terms) -> dict[str, Risk]:
        """Return the risks of the terms that this policy does not accept, worst first."""
        from clustering_protocols.session_terms import risks_of_terms

        risks = risks_of_terms(terms).items()
        return {code: risk for code, risk in risks if code not in self.accepted_risks}

    def accept_risks(self, codes: Iterable[str]) -> Policy:
        """Return a copy of this policy that accepts further risks."""
        return replace(self, accepted_risks=self.accepted_risks.union(codes))

    def check_roster(self, agreement: bytes, slot: str) -> None:
        """Raise GuardRefused if another party could test too many ids against this party's.

        Parties call this before they send any id, even in masked form. The error
        states the number of ids and the number of rows.
        """
        from clustering_protocols.session_terms import check_terms
        from clustering_protocols.terms.agreements import read_agreement

        agreed, terms = read_agreement(agreement)
        params = check_terms(terms)
        if not params.selects_rows:
            return
        n_keys, n_rows = len(params.linking_keys), agreed.member(slot).n_rows
        for name in terms.layout.row_group(terms.layout.slot(slot).row):
            n_values = agreed.member(name).n_rows * max(n_keys, 1)
            kind = "values of match keys" if n_keys else "ids"
            statement = f"{name!r} may bring {n_values} {kind} for your {n_rows} rows"
            excess = _explain_excess(statement, n_values / n_rows, self.ids_per_row)
            if name != slot and excess:
                raise GuardRefused(excess)

    def check_known_members(
        self, agreement: bytes, slot: str, trusted_keys: Collection[str]
    ) -> None:
        """Raise GuardRefused if this party knows too few of the other members.

        A coordinator can invent institutions, but not those whose keys this party
        already knows. The error states the number of known members.

        trusted_keys: public keys of the trusted cards, and of the members with whom the
            operator has compared the safety number.
        """
        from clustering_protocols.terms.agreements import read_agreement

        agreed, _ = read_agreement(agreement)
        own = agreed.member(slot).identity
        other_keys = [m.identity for m in agreed.roster if m.identity != own]
        minimum = _LEAST_KNOWN if self.least_known is None else self.least_known
        n_required = min(minimum, len(other_keys))
        n_trusted = len(set(other_keys) & set(trusted_keys))
        if n_trusted < n_required:
            raise GuardRefused(
                f"You know {n_trusted} of the {len(other_keys)} other members; 'least_known' is "
                f"{n_required}. Trust their cards (coterie identity trust), or have them read "
                "the safety number to you (--confirm-safety-number, and --confirmed-with "
                "for each)."
            )

    def check_min_rows(
        self, terms: Terms, n_rows: int, *, are_linked: bool = False
    ) -> None:
        """Raise GuardRefused if too few of this party's rows take part.

        are_linked: whether the rows were linked to other parties' rows. The error then
            hides the number of linked rows.
        """
        minimum = max(self.minimum_rows, terms.guards.minimum_rows)
        if n_rows < minimum:
            count = "fewer" if are_linked else str(n_rows)
            raise GuardRefused(f"'minimum_rows' is {minimum}; {count} rows take part.")


def quota_option(per_row: float) -> str:
    """Return the command-line option for ``per_row`` values per row of this party."""
    return f"--guard ids_per_row={math.ceil(10 * per_row) / 10:g}"


def quota_options(n_keys: int, quota: float = _DEFAULT_QUOTA) -> tuple[str, ...]:
    """Return the arguments that admit a party of equal size; () if ``quota`` does."""
    return tuple(quota_option(n_keys).split()) if n_keys > quota else ()


def explain_quota(n_keys: int, quota: float = _DEFAULT_QUOTA) -> str:
    """Return why the party needs a larger quota, or an empty string if it does not."""
    statement = (
        f"Another party of equal size may bring {n_keys} values of match keys for each "
        "of your rows"
    )
    return _explain_excess(statement, n_keys, quota)


def _explain_excess(statement: str, per_row: float, quota: float) -> str:
    if per_row <= quota:
        return ""
    return (
        f"{statement}, and each may be a guess. 'ids_per_row' is {quota:g}; to admit them: "
        f"{quota_option(per_row)}."
    )


def count_match_keys(terms: Terms, slot: str) -> int:
    """Return the number of match keys of a slot; 0 if its rows are not linked by keys."""
    from clustering_protocols.session_terms import check_terms
    from clustering_protocols.shared_stages.row_selection import shares_rows

    params = check_terms(terms)
    return len(params.linking_keys) if shares_rows(terms, slot) else 0

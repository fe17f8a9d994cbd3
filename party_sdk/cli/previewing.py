"""What a party's people read before they join: the terms, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from party_sdk.cli.output import say
from party_sdk.policy import Policy

if TYPE_CHECKING:
    from clustering_protocols.schema import Field
    from clustering_protocols.terms import Terms
    from party_sdk.participant import Party


def show_terms(terms: Terms, slot: str) -> None:
    """Say what a session is about, every parameter with its value, and the columns."""
    from clustering_protocols.registry import check_terms
    from party_sdk.arriving import agreed_in

    say(f"{terms.title}: {terms.protocol.name}, as {slot}")
    for name in ("purpose", "legal_basis", "contact"):
        if told := getattr(terms.about, name):
            say(f"{name.replace('_', ' ')}: {told}")
    say(f"parameters {check_terms(terms).model_dump_json()}")
    if terms.evaluation is not None:
        from coterie_pages.terms import runs_sentence

        say(runs_sentence(terms.evaluation))
    if terms.release is not None:
        from coterie_pages.terms import release_sentence

        say(release_sentence(terms.release))
    dictionary, preparation = agreed_in(terms, slot)
    for field in () if dictionary is None else dictionary.fields:
        told = [_type_of(field), field.unit, field.title]
        if preparation is not None:
            told.append(preparation.of(field).sentence)
        say(f"  column {field.name}: {', '.join(filter(None, told))}")


def _type_of(field: Field) -> str:
    if not field.is_category:
        return field.type
    kind = "ordinal" if field.is_ordinal else "category"
    return f"{kind} of {len(field.levels)} levels"


def show_quota(member: Party, policy: Policy) -> None:
    """Say how many ids others may hold against this party's, where any are compared."""
    from clustering_protocols.registry import check_terms

    if check_terms(member.terms).selects_rows:
        say(
            f"ids: each other party of your row group may bring at most "
            f"{policy.ids_per_row:g} for each of your rows (--ids-per-row); how many "
            "each brings is shown before yours leave, blinded"
        )


def show_risks(member: Party) -> None:
    """Say every risk that the terms bring, in a sentence."""
    from clustering_protocols.registry import risks_in

    for code, sentence in risks_in(member.terms).items():
        say(f"risk {code}: {sentence}")

"""A rehearsal: what would be sent of a table, played at home before the order is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError
from clustering_protocols.terms.session_risks import SUMS_LIMIT
from coterie_pages.models.desk import RehearsalPage
from party_sdk.admission.table_admission import agreed_in
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.own_choices import chosen_of
from party_sdk.desk.party.table_choice import (
    TableForm,
    choices_of,
    order_table,
    table_page,
    typed_limits,
)
from party_sdk.desk.responses import bad, form_of, render_page
from party_sdk.home.policy_files import read_policy

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Rehearsal


def post_rehearsal(request: Request) -> Response:
    """Play the session with the table and made-up others; nothing is sent."""
    from party_sdk.lab import rehearse

    kept = kept_of(request)
    chosen = TableForm.of(form_of(request), kept.desk.tables)
    try:
        terms = kept.terms()
        ordered = order_table(chosen, terms, kept.slot)
        table = kept.mend(ordered.to_named_table())
        data = table.open(agreed_in(terms, kept.slot))
        choices = chosen_of(typed_limits(kept, chosen))
        found = rehearse(terms, kept.slot, data, _with_policy(kept, choices))
    except CoterieError as error:
        return table_page(request, kept, chosen, bad(error))
    return render_page(request, _page(kept, chosen, found))


def _with_policy(kept: AddressedParty, choices: dict[str, Any]) -> dict[str, Any]:
    """Return choices with the share of the home's policy, where none was typed."""
    return {SUMS_LIMIT: read_policy(kept.desk.home).sums_limit, **choices}


def _page(kept: AddressedParty, chosen: TableForm, found: Rehearsal) -> RehearsalPage:
    return RehearsalPage(
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        path=chosen.path,
        csv=chosen.csv,
        ids=chosen.ids,
        columns=chosen.columns or (),
        mapping=chosen.mapping,
        notify=chosen.notify,
        choices=choices_of(kept, chosen),
        played=found,
    )

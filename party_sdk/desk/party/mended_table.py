"""A party's table is mended: by the dictionary of its terms, before it takes part."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from coterie_pages.models.table_mapping import MendedTable
from party_sdk.admission.table_admission import agreed_in
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.table_choice import TableForm, choices_of, table_page
from party_sdk.desk.responses import bad, form_of, render_page, to
from party_sdk.desk.tables.mapping_page import MappingPlace, mend


def get_mapping(request: Request) -> Response:
    """Show the choice of the table: a mapping is one of a table."""
    return to(request, f"{kept_of(request).address}/table")


def post_mapping(request: Request) -> Response:
    """Draft a mapping, or try the one of the form on the table."""
    kept, form = kept_of(request), form_of(request)
    chosen = TableForm.of(form, kept.desk.tables)
    try:
        said, trouble = mend(form, _find_place(kept))
    except CoterieError as error:
        return table_page(request, kept, chosen, bad(error))
    model = MendedTable(
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        choices=choices_of(kept, chosen),
        **said,
    )
    return render_page(request, model, notice=trouble)


def _find_place(kept: AddressedParty) -> MappingPlace:
    terms = kept.terms()
    schema = agreed_in(terms, kept.slot).dictionary
    if schema is None:
        raise NotReady("The terms of this session have no dictionary.")
    return MappingPlace(
        address=f"{kept.address}/mapping",
        schema=schema,
        check=lambda named: named.check_table(terms, kept.slot),
        folder=kept.desk.tables,
        kept=kept.kept_mapping,
    )

"""New rows get the labels of a session that has ended: chosen, summed up, and as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, InvalidParameters, NotReady
from coterie_pages.models.desk import LabelledRows, NewRowsChoice
from coterie_pages.models.frame import Banner
from party_sdk.admission.table_admission import agreed_in
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.table_choice import (
    TableForm,
    describe_reading,
    describe_table,
    query_of,
)
from party_sdk.desk.responses import bad, file, form_of, render_page

if TYPE_CHECKING:
    from party_sdk.results.new_rows import NewRows

_ENDINGS: Final = frozenset({".csv", ".xlsx", ".parquet"})


def get_new_rows(request: Request) -> Response:
    """Show the files to choose from, or how the chosen one is read."""
    kept = _find_party(request)
    chosen = TableForm.of(query_of(request), kept.desk.tables)
    return _choice_page(request, kept, chosen)


def post_new_rows(request: Request) -> Response:
    """Label the rows, and show what is said of them as a whole."""
    kept, form = _find_party(request), form_of(request)
    chosen = TableForm.of(form, kept.desk.tables)
    attempt = _Attempt(kept, chosen, agreed=bool(form.one("agree")))
    try:
        found = attempt.label()
        if found.summary is None:
            raise NotReady("Nothing is kept here that new rows are compared with.")
    except CoterieError as error:
        return _refuse(request, attempt, error)
    model = LabelledRows(
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        path=chosen.path,
        csv=chosen.csv,
        ids=chosen.ids,
        agreed=attempt.agreed,
        summary=found.summary,
    )
    return render_page(request, model)


def post_file(request: Request) -> Response:
    """Label the rows again, and return them as a file: none is kept at home."""
    kept, form = _find_party(request), form_of(request)
    chosen, ending = TableForm.of(form, kept.desk.tables), form.one("ending")
    attempt = _Attempt(kept, chosen, agreed=bool(form.one("agree")))
    try:
        if ending not in _ENDINGS:
            raise InvalidParameters("no such kind of file.", field="ending")
        content = attempt.label().encode(ending)
    except CoterieError as error:
        return _refuse(request, attempt, error)
    name = f"{kept.session}-{kept.slot}-{Path(chosen.path).stem}-labels{ending}"
    media = "text/csv" if ending == ".csv" else "application/octet-stream"
    return file(content, name, media)


def _find_party(request: Request) -> AddressedParty:
    """Return the party of an address; :class:`NotReady` where it labels no new rows."""
    kept = kept_of(request)
    if not kept.desk.own_home.labels_new_rows(kept.session, kept.slot):
        raise NotReady(
            "The terms of this session release nothing that labels new rows."
        )
    return kept


class _Attempt:
    """New rows of a form, to be labelled once.

    agreed: whether they are labelled though they look like other units.
    doubt: what makes them look so, once they were read.
    """

    def __init__(
        self,
        kept: AddressedParty,
        chosen: TableForm,
        *,
        agreed: bool,
    ) -> None:
        self.kept, self.chosen, self.agreed = kept, chosen, agreed
        self.doubt = ""

    def label(self) -> NewRows:
        """Return the rows with their labels; see :meth:`Home.label`."""
        kept = self.kept
        # the session says which columns it clustered
        table = replace(self.chosen, columns=None).to_ordered_table().to_named_table()
        return kept.desk.own_home.label(
            kept.session, kept.slot, table, agree=self._agree
        )

    def _agree(self, doubt: str) -> bool:
        self.doubt = doubt
        return self.agreed


def _refuse(request: Request, attempt: _Attempt, error: CoterieError) -> Response:
    """Show the choice again, with what is wrong or what has to be agreed to."""
    notice = None if attempt.doubt else bad(error)
    return _choice_page(
        request,
        attempt.kept,
        attempt.chosen,
        notice,
        doubt=attempt.doubt,
    )


def _choice_page(
    request: Request,
    kept: AddressedParty,
    chosen: TableForm,
    notice: Banner | None = None,
    *,
    doubt: str = "",
) -> Response:
    said, trouble = describe_reading(kept, chosen, _read)
    model = NewRowsChoice(doubt=doubt, **said)
    return render_page(request, model, notice=notice or trouble)


def _read(kept: AddressedParty, chosen: TableForm) -> dict[str, Any]:
    """Return how a table is read, and whether its rows can get labels."""
    from party_sdk.tables import column_names

    named = replace(chosen, columns=None).to_ordered_table().to_named_table()
    named = named.with_mapping(kept.files.folder.mappings.for_new_rows())
    if not chosen.checked:  # what named the rows of the run is ticked at first
        names = column_names(Path(named.path), named.how)
        usual = tuple(name for name in _usual_ids(kept) if name in names)
        chosen = replace(chosen, ids=usual)
    agreed = agreed_in(kept.terms(), kept.slot)
    columns = kept.files.folder.load_identity().columns
    return describe_table(
        named, chosen, columns, lambda: named.check_new_rows(agreed, columns)
    )


def _usual_ids(kept: AddressedParty) -> tuple[str, ...]:
    """Return the columns that named the rows of the run, where the desk ran it."""
    order = kept.order
    return () if order is None or order.table is None else order.table.id_column

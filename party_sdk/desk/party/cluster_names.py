"""What people call the clusters: kept here, and carried in letters to other parties."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.run_results import outcome
from party_sdk.desk.responses import bad, file, form_of, to
from party_sdk.desk.tables.named_file import pasted_or_named

_NAME: Final = "name-"


def post_names(request: Request) -> Response:
    """Keep what people here call the clusters."""
    from party_sdk.application.exports import name_clusters

    kept = kept_of(request)
    try:
        name_clusters(kept.desk.own_home, kept.files.folder, _read_names(request))
    except CoterieError as error:
        return outcome(request, kept, bad(error))
    return to(request, _report(kept))


def post_own_letter(request: Request) -> Response:
    """Return a letter with the own names to one who reads the profile, as a file."""
    from party_sdk.application.exports import name_letter_file, seal_names

    kept, reader = kept_of(request), form_of(request).one("reader")
    folder = kept.files.folder
    try:
        letters = seal_names(kept.desk.own_home, folder)
        if reader not in letters:
            raise NotReady("No such party reads the profile.")
    except CoterieError as error:
        return outcome(request, kept, bad(error))
    name = name_letter_file(folder, reader)
    return file(letters[reader], name, "application/octet-stream")


def post_letter(request: Request) -> Response:
    """Keep the names in a letter of another party."""
    from party_sdk.application.exports import receive_names

    kept = kept_of(request)
    try:
        text = pasted_or_named(form_of(request), "letter", kept.desk.tables)
        receive_names(kept.desk.own_home, kept.files.folder, [text.encode()])
    except CoterieError as error:
        return outcome(request, kept, bad(error))
    return to(request, _report(kept))


def _report(kept: AddressedParty) -> str:
    return f"{kept.address}/report"


def _read_names(request: Request) -> dict[int, str]:
    """Return the names that a form gives; an empty one is taken back."""
    form = form_of(request)
    return {
        int(number): form.one(field).strip()
        for field in form.fields
        if (number := field.removeprefix(_NAME)) != field and number.isdigit()
    }

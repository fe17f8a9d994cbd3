"""Terms as an analyst draws them up, without an analyst."""

from typing import Any

from clustering_protocols.catalogue import find_protocol_name
from clustering_protocols.contract import Params
from clustering_protocols.session_terms import draw_up_terms
from clustering_protocols.terms.terms import Layout, SessionRequest, Terms, read_terms


def drawn(params: Params, layout: Layout, session: str = "s", **sections: Any) -> Terms:
    """Return terms with these sections; the public seed is 0 unless one is given."""
    protocol = {
        "name": find_protocol_name(params),
        "params": params.model_dump(mode="json"),
    }
    asked = {"seed": 0, **sections, "protocol": protocol, "layout": layout}
    return read_terms(draw_up_terms(session, SessionRequest.model_validate(asked)))

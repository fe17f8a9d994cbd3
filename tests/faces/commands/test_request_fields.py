"""Each option of `coterie session create` that fills the request asks for one field."""

from clustering_protocols.terms import captions
from clustering_protocols.terms.request_fields import request_fields


def test_every_option_asks_for_one_field() -> None:
    asked = [each.caption.flag for each in request_fields() if each.caption.flag]
    offered = [
        each.flag
        for each in vars(captions).values()
        if isinstance(each, captions.Caption) and each.flag
    ]
    assert sorted(asked) == sorted(offered)
    assert len(set(asked)) == len(asked) > 8

"""Golden records: what every session of the examples sends, as committed digests.

``tests/protocols/golden/<protocol>.json`` holds, for every example, the terms, the
roster, each record that is sent (those in envelopes before they are sealed),
the results and the transcript. tests/README.md says how they are read, compared and
written anew.
"""

"""The page of derivations is enough to get the package's bytes."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from clustering_protocols.contract.party import Memory, PartyContext
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.randomness import KeyedStream, derive_key
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy import field, keys
from clustering_protocols.secrecy.envelopes import Binding, seal
from clustering_protocols.secrecy.keys import PartyKeys, party_keys
from clustering_protocols.secrecy.masks import add_tagged
from clustering_protocols.shared_stages.masked_sums import MaskedSum, read, share
from clustering_protocols.shared_stages.secrets import ColumnSecret
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout
from tests.spec.independent import derivations as independent

KEY = sha256(b"a key").digest()
NAME = "größe"
FOLDER = Path(independent.__file__).parent
ALLOWED = {"cryptography", "numpy", *sys.stdlib_module_names}


@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem
)
def test_the_independent_party_imports_nothing_of_ours(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            assert str(node.module).partition(".")[0] in ALLOWED, node.module
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= ALLOWED
        if isinstance(node, ast.FunctionDef):
            said = ast.get_docstring(node) or ""
            assert re.match(r"Sections? \d+[ :,]", said), node.name


def test_keys_and_draws_are_the_same() -> None:
    assert independent.derive(KEY, b"salt", NAME, 7, b"x") == derive_key(
        KEY, NAME, 7, b"x", salt=b"salt"
    )
    ours, theirs = KeyedStream(KEY), independent.Stream(KEY)
    assert ours.words(5).tolist() == theirs.words(5).tolist()
    assert ours.uniform(4).tolist() == theirs.uniform(4).tolist()
    assert ours.permutation(9).tolist() == theirs.permutation(9)
    assert field.draw(ours, 6).tolist() == theirs.residues(6)


def test_residues_that_are_rejected_are_drawn_behind_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = np.array([independent.P, 3, 2**64 - 1, 5, independent.P, 6], np.uint64)

    def words_in_turn(places: list[int]):  # type: ignore[no-untyped-def]
        def words(_: object, size: int) -> independent.Words:
            begin = places[0]
            places[0] += size
            return given[begin : begin + size].copy()

        return words

    monkeypatch.setattr(KeyedStream, "words", words_in_turn([0]))
    monkeypatch.setattr(independent.Stream, "words", words_in_turn([0]))
    ours = field.draw(KeyedStream(KEY), 3).tolist()
    assert ours == independent.Stream(KEY).residues(3) == [5, 3, 6]


def test_marks_are_the_same() -> None:
    line = independent.signed_line("s", "ab" * 32, NAME.encode())
    assert independent.mark(KEY, line) == keys.mark(KEY, line)


def test_an_envelope_opens_and_another_place_is_refused() -> None:
    sender, receiver = PartyKeys(KEY, "s", "a"), PartyKeys(KEY, "s", "b")
    binding = Binding(
        transcript="ab" * 32,
        session="s",
        stage="secrets",
        round=2,
        attempt=1,
        sender="a",
        receiver="b",
        kind="group-secret",
    )
    place = ("ab" * 32, "s", "secrets", 2, 1, "a", "b", "group-secret")
    sealed = seal(NAME.encode(), binding, sender, receiver.public)
    signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(sender.public.ed25519))
    info = independent.lp("coterie/envelope/3", *place)
    found = independent.open_envelope(sealed, info, receiver.opening, signer)
    assert found.decode() == NAME
    other = independent.lp("coterie/envelope/3", *place[:-1], "word")
    with pytest.raises(independent.Refusal, match="envelope-refused"):
        independent.open_envelope(sealed, other, receiver.opening, signer)


def crowd_of(n: int) -> dict[str, PartyContext]:
    """Return where n parties stand that share rows, and the secret of their columns."""
    layout = Layout.lattice(n)
    data = {slot: MatrixSource(np.zeros((10, 2))) for slot in layout.names}
    agreed = Session(Dummy(), layout, data, seed=5)
    return {
        slot: replace(
            agreed.context(slot),
            memory=Memory().remember([ColumnSecret(secret=KEY.hex())]),
            stage="stage",
            round=3,
            attempt=1,
            transcripts={(3, 1): sha256(b"told").hexdigest()},
        )
        for slot in layout.names
    }


def share_by_the_page(
    view: PartyContext, words: independent.Words, of: MaskedSum
) -> independent.Words:
    """Return a share that is made by what the page says."""
    session = view.session
    own = party_keys(view.entropy, session.terms.session, view.slot.name)
    public = {slot: session.member(slot).keys.x25519 for slot in of.members}
    secret = bytes.fromhex(view.recall(ColumnSecret).secret)
    return independent.share(
        words,
        independent.sum_label(of.transcript, of.name, of.members),
        of.transcript,
        view.slot.name,
        (own.opening, public),
        (secret, session.agreement_digest),
    )


@pytest.mark.parametrize("size", [1, 1100])
def test_shares_are_the_same_word_by_word(size: int) -> None:
    crowd = crowd_of(3)
    rng = np.random.default_rng(size)
    words = {s: rng.integers(-(2**50), 2**50, size).view(np.uint64) for s in crowd}
    sent = {}
    for slot, view in crowd.items():
        of = MaskedSum.from_context(view, list(crowd), NAME)
        sent[slot] = share_by_the_page(view, words[slot], of)
        ours = share(view, words[slot], of, "column")
        assert sent[slot].tolist() == ours.tolist()
    total = read(view, add_tagged(sent.values()), of, "column", lambda _: True)
    assert total.tolist() == np.sum(list(words.values()), axis=0).tolist()

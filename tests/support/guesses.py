"""What an analyst who guesses ids could look for in what it holds."""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream, length_prefixed
from clustering_protocols.secrecy import ristretto
from clustering_protocols.shared_stages.alignment.identifiers import (
    join_parts,
    normalise_id_parts,
)
from clustering_protocols.shared_stages.alignment.params import Alignment

HASHES = ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b")
SHORTEST = 6  # bytes: a shorter form would be found by chance


def spellings(name: str) -> list[bytes]:
    """A guessed id as it may be written."""
    normal = normalise_id_parts(name, Alignment().normalisation)
    written = [name, name.upper(), name.casefold(), *normal, join_parts(normal)]
    return [text.encode() for text in dict.fromkeys(written)]


def forms(names: Iterable[str], known: Sequence[bytes]) -> Iterator[bytes]:
    """Yield ids, and what keys and contexts that are no secret let one compute from them.

    ``known``: what the analyst knows of the session: id, digests, contexts.
    """
    for name in names:
        for text in spellings(name):
            yield text
            for kind in HASHES:
                yield hashlib.new(kind, text).digest()
                for key in known:
                    yield hmac.new(key, text, kind).digest()
                    yield hashlib.new(kind, key + text).digest()
                    yield hashlib.new(kind, length_prefixed(key, text)).digest()
            yield from points(text, known)


def points(text: bytes, known: Sequence[bytes]) -> Iterator[bytes]:
    """Hashes of an id to the group, and their tokens without a mask."""
    sodium, no_filler = ristretto.load_sodium(), KeyedStream(bytes(32))
    for purpose in known:
        (hashed,) = ristretto.hash_values([text], purpose, no_filler)
        point = sodium.crypto_core_ristretto255_from_hash(hashed)
        yield point
        for context in known:
            yield hashlib.sha256(context + point).digest()


def writings(form: bytes) -> list[bytes]:
    """A form as it may stand in a file: raw, as hex, in base 64."""
    coded = base64.b64encode(form).rstrip(b"=")[:-1]
    return [form, form.hex().encode(), form.hex().upper().encode(), coded]


def found(held: bytes, names: Iterable[str], known: Sequence[bytes]) -> list[bytes]:
    """Return the forms of guessed ids that occur in what is held.

    Only forms whose first eight bytes stand somewhere are looked for: one at a time would
    take minutes.
    """
    guessed = [(form, w) for form in forms(names, known) for w in writings(form)]
    starts = np.frombuffer(b"".join(w[:8].ljust(8) for _, w in guessed), "<u8")
    wanted, seen = np.unique(starts), set[int]()
    for at in range(8):
        cut = np.frombuffer(held, "<u8", (len(held) - at) // 8, at)
        nearest = wanted[np.searchsorted(wanted[:-1], cut)]
        seen.update(cut[cut == nearest].tolist())
    return [
        form
        for (form, w), start in zip(guessed, starts.tolist(), strict=True)
        if len(w) >= SHORTEST and (start in seen or len(w) < 8) and w in held
    ]

"""Cryptography that hides the parties' data from the analyst.

Keys, envelopes and streams use the `cryptography` library, masked ids use libsodium
(:mod:`.ristretto`), and OpenDP calibrates the noise that :mod:`.budget` draws.
"""

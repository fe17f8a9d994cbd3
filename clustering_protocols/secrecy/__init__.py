"""Cryptography that hides the parties' data from the analyst.

Keys, envelopes and streams are calls of the `cryptography` library; intersections use
libsodium (:mod:`.ristretto`); OpenDP calibrates the noise that :mod:`.budget` draws.
"""

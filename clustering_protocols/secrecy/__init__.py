"""Cryptography that hides the parties' data from the analyst.

Keys, envelopes and streams come from the `cryptography` library; intersections use
libsodium (:mod:`.ristretto`); OpenDP calibrates the noise that :mod:`.budget` draws.
"""

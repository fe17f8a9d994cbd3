"""A large contribution in pieces: each is stored by itself, all together are one upload."""

"""A party in a session: joining, rounds, and what is kept of them on its own disk."""

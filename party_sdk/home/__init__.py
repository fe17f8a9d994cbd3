"""An institution's home directory: its policy, identities, trusted keys and database."""

"""The database: its tables, connections and transactions."""

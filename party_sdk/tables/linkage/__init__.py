"""Match keys at home: proposed from a table, and tried on made people."""

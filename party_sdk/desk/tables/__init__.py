"""Pages of tables: reading and mending them, in a session or before one."""

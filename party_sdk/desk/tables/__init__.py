"""Pages that read tables and draft mappings for them, within a session or before one."""

"""Which protocol fits, and what a session of a size takes."""

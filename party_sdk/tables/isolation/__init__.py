"""Files that are no plain text are read in a process of their own, under limits."""

"""Sessions with all roles on one machine: simulated and local sessions, and rehearsals."""

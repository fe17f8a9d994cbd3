"""All roles on one machine: simulated and local sessions, rehearsals."""

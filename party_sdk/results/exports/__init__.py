"""A result as files for other programs: the own table with clusters, and the profile."""

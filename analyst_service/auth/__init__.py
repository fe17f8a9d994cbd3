"""Who may do what: keys of administrators and coordinators, tokens of parties."""

"""The actions of an institution at its home, shared by commands, desk and supervisor."""

"""The actions of an institution, shared by the command line, desk and supervisor."""

"""One folder per protocol; the registry finds them by their folders."""

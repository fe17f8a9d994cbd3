"""The protocols, each in a folder by which the registry finds it."""

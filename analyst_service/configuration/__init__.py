"""What an administrator may set, and where values of settings come from."""

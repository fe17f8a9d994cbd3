"""Mail to people whom a session waits for, from the outbox."""

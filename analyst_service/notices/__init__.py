"""Telling people what waits for them: webhooks and mail, from the outbox."""

"""The analyst: a FastAPI service that keeps sessions, relays envelopes and steps rounds."""

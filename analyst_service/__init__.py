"""The analyst: a FastAPI service that stores sessions, relays envelopes and runs steps."""

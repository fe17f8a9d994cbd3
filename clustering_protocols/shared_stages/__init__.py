"""Stages that run before those of a protocol, under the same contract."""

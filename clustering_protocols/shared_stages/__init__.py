"""Stages that protocols share, under the same contract as a protocol's own."""

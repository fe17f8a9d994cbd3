"""Writes spec/vectors: what the wire's specification says, as inputs and outputs."""

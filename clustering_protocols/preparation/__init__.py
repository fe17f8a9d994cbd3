"""What comes before a protocol, as stages of the same contract."""

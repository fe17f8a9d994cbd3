"""What comes before a protocol: stages of the same contract, and what they share."""

"""Whether a party program, in whichever language, speaks the published wire."""

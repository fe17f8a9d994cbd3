"""What an institution does at its home: each verb once, for every face that calls it."""

"""Opening a party's table for a session, and checking whether it satisfies the terms."""

"""Pages for a coordinator, who opens sessions and follows their progress."""

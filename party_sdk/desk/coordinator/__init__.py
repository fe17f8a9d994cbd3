"""Pages of a coordinator: opening sessions, and watching them."""

"""What a page says of a result: clusters in words, doubts, methods, a suggestion."""

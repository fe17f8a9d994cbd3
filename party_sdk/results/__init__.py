"""A party's results: the labels of its rows, with pictures and files."""

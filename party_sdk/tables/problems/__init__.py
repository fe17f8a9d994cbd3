"""What is wrong with cells, value by value: for the operator's own screen."""

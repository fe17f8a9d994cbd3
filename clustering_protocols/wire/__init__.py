"""The vocabulary of service and SDK: what one writes in an answer and the other reads."""

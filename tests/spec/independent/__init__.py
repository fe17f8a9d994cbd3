"""A party written from spec/ alone, with the standard library, numpy and cryptography."""

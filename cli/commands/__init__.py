"""Commands that are no algorithms, one a file."""

"""Commands that ask no question, one in each file."""

"""Many commands in one file: what they are, in what order they run, and what became of them."""

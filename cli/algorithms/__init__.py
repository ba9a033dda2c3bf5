"""Commands that ask a question of a graph, a file each."""

"""Outputs of a run: names of vertices, results, checkpoints."""

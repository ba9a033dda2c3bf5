"""What a run leaves: names of vertices, results, checkpoints."""

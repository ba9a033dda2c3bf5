"""What a run leaves: names of vertices, results, checkpoints, and how a result is judged."""

"""Results of a run and its checkpoints: names of vertices, columns, files, supersteps."""

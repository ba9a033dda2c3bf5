"""Questions that are asked of a graph, a file each: from an input to a result on disk."""

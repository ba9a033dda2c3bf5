"""The ways to run over a graph, a file or folder each; ``choose`` takes the first that fits."""

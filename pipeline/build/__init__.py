"""From an edge list to a store: plan, steps, CPUs and GPUs; and edge lists that are made."""

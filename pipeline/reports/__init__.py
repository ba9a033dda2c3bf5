"""Reports for people and machines, on edge lists, stores, plans, results and benches."""

"""What people and machines are told of edge lists, stores, plans, results and benches."""

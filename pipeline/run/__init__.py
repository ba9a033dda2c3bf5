"""Where tasks run and what they may hold: executor, clusters, devices, budgets, records."""

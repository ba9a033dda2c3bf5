"""The means of a run: executor, clusters, devices, budgets of memory, records."""

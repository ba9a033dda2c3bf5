"""Ranks on the workers of a cluster: the job of a search, the client, the plan."""

"""Edge lists as they come: Parquet, ids of any kind, the dictionary to dense ids."""

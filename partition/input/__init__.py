"""Edge lists as input: Parquet files, ids of any type, and the dictionary that makes ids dense."""

"""Edge lists as input: Parquet files, and ids of any type."""

"""What every kernel stands on: graphs, bitmaps, numberings, atomics, teams of threads, sorting."""

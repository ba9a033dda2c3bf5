"""The base of every kernel: graphs, bitmaps, numberings, atomics, teams of threads, sorting."""

"""CPU kernels of programs, each of which knows its question: shortest paths, forests, walks, and
searches by one thread.
"""

"""Kernels for one GPU: preparing, searching, checking and generating, and memory that other ranks
read. Only the module ``device`` imports CuPy.
"""

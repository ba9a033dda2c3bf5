"""Engines: the ways to run over a graph, each in a file or folder; ``choose`` takes the first that
fits.
"""

"""Kernels of the judges in pipeline/judging/: rules over edges, and values computed anew."""

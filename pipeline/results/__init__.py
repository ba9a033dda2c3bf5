"""Results and checkpoints of a run: the columns and files of a result, the names of its vertices,
its findings, and the records of its supersteps.
"""

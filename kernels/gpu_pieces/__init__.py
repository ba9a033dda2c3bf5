"""Operations on one GPU: calls of the kernels in cuda/pieces/. ``gather`` stands in gpu_programs,
since PageRank is made of it.
"""

"""How many devices ``dask_cuda`` shares out."""


def get_n_gpus() -> int:
    return 4

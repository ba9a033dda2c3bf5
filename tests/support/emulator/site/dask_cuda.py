"""What ``import dask_cuda`` finds there: every worker has the first device. So many there are."""

from typing import Any

from distributed import LocalCluster

from delegraph.kernels.gpu import driver

driver.count_devices = lambda: 4


def _cluster(data: Any = None, memory_limit: Any = None, **options: Any) -> LocalCluster:
    return LocalCluster(processes=True, memory_limit=0, **options)


LocalCUDACluster = _cluster

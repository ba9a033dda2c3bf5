"""Finds the packages: layers stand at the top of the repository, and are ``delegraph.LAYER``.

A build compiles kernels into the package, so that usual first runs do not wait for a compiler. That
takes the packages that pyproject.toml names, which the build runs; CUDA kernels take NVRTC.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

LAYERS = ("kernels", "partition", "pipeline", "cli")
FOLDERS = {"delegraph": "api"} | {f"delegraph.{layer}": layer for layer in LAYERS}


def folders(layer: str) -> list[str]:
    """Those of CUDA sources, too, which have no ``__init__.py``."""
    return find_namespace_packages(layer, exclude=["*__pycache__*"])


class BuildPackage(build_py):
    """The build of an installation, which also compiles kernels. It goes on without them if they
    cannot be compiled: each machine then compiles what it needs.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        built = Path(self.build_lib).absolute()
        shipped, cubins = (
            built / "delegraph" / "kernels" / name for name in ("shipped.bin", "cubins")
        )
        shipped.unlink(missing_ok=True)
        shutil.rmtree(cubins, ignore_errors=True)
        module = [sys.executable, "-m", "delegraph.pipeline.warm_up"]
        paths = os.pathsep.join([str(built), *filter(None, sys.path)])
        env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        processes = [
            subprocess.Popen([*module, *arguments], cwd=built, env=env)
            for arguments in ([shipped], ["--cuda", cubins])
        ]
        cpu_failed, gpu_failed = (process.wait() for process in processes)
        if cpu_failed:
            shipped.unlink(missing_ok=True)
            self.warn("kernels are not compiled beforehand: a first run compiles them")
        if gpu_failed:
            self.warn("CUDA kernels are not compiled beforehand: a first run compiles them")


setup(
    # CUDA's compiler library, where there may be a GPU.
    setup_requires=["nvidia-cuda-nvrtc"] if os.path.exists("/proc/driver/nvidia") else [],
    cmdclass={"build_py": BuildPackage},
    packages=[
        *FOLDERS,
        *(f"delegraph.{layer}.{found}" for layer in LAYERS for found in folders(layer)),
    ],
    package_dir=FOLDERS,
    package_data={
        "delegraph": ["py.typed", "*.pyi"],
        **{f"delegraph.kernels.{name}": ["*.cu", "*.cuh"] for name in folders("kernels")},
        "delegraph.pipeline": ["reports/page/*.css"],
    },
)

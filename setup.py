"""Finds the packages: layers stand at the top of the repository, and are ``delegraph.LAYER``."""

from setuptools import find_namespace_packages, setup

LAYERS = ("kernels", "partition", "pipeline", "cli")
FOLDERS = {"delegraph": "api"} | {f"delegraph.{layer}": layer for layer in LAYERS}


def folders(layer: str) -> list[str]:
    """Those of CUDA sources, too, which have no ``__init__.py``."""
    return find_namespace_packages(layer, exclude=["*__pycache__*"])


setup(
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

"""Finds the packages: layers stand at the top of the repository, and are ``delegraph.LAYER``."""

from setuptools import find_packages, setup

LAYERS = ("kernels", "partition", "pipeline", "cli")
FOLDERS = {"delegraph": "api"} | {f"delegraph.{layer}": layer for layer in LAYERS}

setup(
    packages=[
        *FOLDERS,
        *(f"delegraph.{layer}.{found}" for layer in LAYERS for found in find_packages(layer)),
    ],
    package_dir=FOLDERS,
    package_data={
        "delegraph": ["py.typed"],
        "delegraph.kernels": ["cuda/*/*.cu", "cuda/*/*.cuh"],
        "delegraph.pipeline": ["reports/page/*.css"],
    },
)

"""A layer imports only from those below it, and only those that may know Dask or a terminal do."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ["kernels", "partition", "pipeline", "cli"]
FORBIDDEN = {
    "kernels": {"dask", "distributed", "pyarrow", "click"},
    "partition": {"dask", "distributed", "click"},
    "pipeline": {"click"},
    "cli": set(),
}


def _imports(path: Path):
    """(level, module) of every import in a file, wherever it stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module] if module else [alias.name for alias in node.names]
            yield from ((node.level, name) for name in names)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_only_from_below(layer):
    below = LAYERS[: LAYERS.index(layer)]
    files = list((ROOT / layer).rglob("*.py"))
    assert files
    for path in files:
        for level, module in _imports(path):
            first = module.split(".")[0]
            if level == 0:
                assert first != "delegraph", f"{path}: import relatively inside the package"
                assert first not in FORBIDDEN[layer], f"{path} imports {module}"
            elif level == 2:
                assert first in [*below, "_version"], f"{path} imports {module} from above"


@pytest.mark.parametrize("module", ["delegraph", "delegraph.cli.main"])
def test_import_is_light(module):
    heavy = "{'dask', 'distributed', 'numba', 'numpy', 'pandas', 'pyarrow'}"
    code = f"import sys, {module}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_bfs_loads_no_pandas_and_no_cluster(edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2])
    code = (
        "import sys; from delegraph.cli.main import main\n"
        "try: main()\nexcept SystemExit as e: assert not e.code\n"
        "assert not {'pandas', 'distributed'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", code, "bfs", edges, "--source", "0", "-o", tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True)


def test_public_names_load():
    import delegraph

    for name in delegraph.__all__:
        assert getattr(delegraph, name) is not None
    with pytest.raises(AttributeError):
        _ = delegraph.nothing

"""Imports go one way: from a layer to those below it, and inside a layer from folder to folder.

Only named files may import Dask, Arrow or a terminal.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from delegraph.pipeline.questions import QUESTIONS

ROOT = Path(__file__).parents[1]
HOUSE = {
    "kernels": [
        "base",
        "prepare",
        "bfs",
        "reference",
        "reference_communities",
        "pieces",
        "programs",
        "judging",
        "gpu",
        "gpu_programs",
        "gpu_pieces",
        "gpu_ranks",
    ],
    "partition": ["secrets", "errors", "numbers", "disk", "input", "dictionary", "store"],
    "pipeline": [
        "questions",
        "run",
        "ranks",
        "results",
        "judging",
        "interchange",
        "build",
        "engines",
        "algorithms",
        "batches",
        "parameter_checks",
        "python_side",
        "summary",
        "notebook",
        "result",
        "bench",
        "reports",
        "edge_sources",
        "sql_tables",
        "edge_reader",
        "methods",
        "graph",
        "edge_lists",
        "api",
        "ask",
        "functions",
        "warm_up",
        "networkx",
    ],
    "cli": [],
}
"""The layers, and the folders (or single files) of each, from the ground up."""

INSIDE = {"pipeline/engines": ["direction", "ranks", "device_ranks"]}
LAYERS = list(HOUSE)
MOST_FILES = 14
REGISTRIES = {
    *("pipeline/questions", "pipeline/algorithms", "pipeline/judging"),
    "pipeline/interchange",
}
"""Folders with a file for each question, algorithm or format, where the number of files has no
limit.
"""

FORBIDDEN = {
    "kernels": {"dask", "distributed", "pyarrow", "click"},
    "partition": {"dask", "distributed", "click", "cupy"},
    "pipeline": {"click", "cupy"},
    "cli": {"cupy"},
}


def _imports(path: Path) -> list[tuple[str, ...]]:
    """Return the modules that a file imports, anywhere in the file: of the package, the path from
    ``delegraph`` on; of others, ``("", name)``.
    """
    package = path.relative_to(ROOT).parts[:-1]
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [("", alias.name.split(".")[0]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.append(("", str(node.module).split(".")[0]))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            modules += [(*base, *name.split(".")) for name in names]
            if node.module:
                inside = (*base, *node.module.split("."))
                modules += [
                    (*inside, alias.name)
                    for alias in node.names
                    if (ROOT.joinpath(*inside, alias.name)).with_suffix(".py").exists()
                    or ROOT.joinpath(*inside, alias.name).is_dir()
                ]
    return modules


def _files(layer: str) -> list[Path]:
    files = sorted((ROOT / layer).rglob("*.py"))
    assert files
    return files


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_only_from_below(layer):
    below = LAYERS[: LAYERS.index(layer) + 1]
    for path in _files(layer):
        for first, *rest in _imports(path):
            if first == "":
                assert rest[0] != "delegraph", f"{path}: import relatively inside the package"
                if (layer, rest[0], path.stem) != ("kernels", "cupy", "device"):
                    assert rest[0] not in FORBIDDEN[layer], f"{path} imports {rest[0]}"
            else:
                assert first in [*below, "_version"], f"{path} imports {first} from above"


def _in_order(folder: str, order: list[str]) -> None:
    """Check that each part in ``order`` imports only parts before it, or itself."""
    parts = tuple(folder.split("/"))
    for path in _files(folder):
        place = path.relative_to(ROOT / folder).with_suffix("").parts[0]
        if place not in order:
            continue
        for module in _imports(path):
            if module[: len(parts)] == parts and len(module) > len(parts):
                other = module[len(parts)]
                if other in order:
                    assert order.index(other) <= order.index(place), f"{path} imports {module}"


@pytest.mark.parametrize("layer", LAYERS)
def test_folders_import_one_way(layer):
    entries = {path.stem for path in (ROOT / layer).iterdir() if path.name[0] not in "_."}
    if layer != "cli":
        assert entries - {"cuda"} == set(HOUSE[layer])
    _in_order(layer, HOUSE[layer])


@pytest.mark.parametrize("folder", INSIDE)
def test_folders_inside_import_one_way(folder):
    _in_order(folder, INSIDE[folder])


def test_no_file_imports_itself():
    """No file imports itself, directly or by way of other files, wherever in a file the import
    stands.
    """
    imports = {}
    for path in [path for layer in LAYERS for path in _files(layer)]:
        files = {ROOT.joinpath(*parts).with_suffix(".py") for parts in _imports(path) if parts[0]}
        imports[path] = {other for other in files if other.exists()}
    TopologicalSorter(imports).prepare()  # CycleError names the files


def test_folders_are_small():
    for layer in LAYERS:
        for folder in [ROOT / layer, *(ROOT / layer).rglob("*/")]:
            files = [path for path in folder.glob("*.py") if path.stem != "__init__"]
            if str(folder.relative_to(ROOT)) not in REGISTRIES:
                assert len(files) <= MOST_FILES, f"{folder}: {len(files)} files"
            if folder.name not in ("cuda", "__pycache__") and folder.parent.name != "cuda":
                assert (folder / "__init__.py").read_text().startswith('"""')


@pytest.mark.parametrize(
    "module", ["delegraph", "delegraph.cli.main", "delegraph.pipeline.questions"]
)
def test_import_is_light(module):
    heavy = "{'dask', 'distributed', 'numba', 'numpy', 'pandas', 'pyarrow'}"
    code = f"import sys, {module}; print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_a_small_command_loads_little(edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2])
    code = (
        "import sys; from delegraph.cli.main import main\n"
        "try: main()\nexcept SystemExit as e: assert not e.code\n"
        "unused = {'asyncio', 'dask', 'distributed', 'pandas', 'pyarrow.compute'}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)"
    )
    command = [sys.executable, "-c", code, "bfs", edges, "--source", "0", "-o", tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True)


def test_public_names_load():
    import delegraph

    for name in dir(delegraph):
        assert getattr(delegraph, name) is not None
    stub = ast.parse((ROOT / "api" / "__init__.pyi").read_text())
    imported = [
        name for part in stub.body if isinstance(part, ast.ImportFrom) for name in part.names
    ]
    typed = {name.asname for name in imported if name.name != "*"}
    assert typed | {*QUESTIONS} == {*dir(delegraph)}
    with pytest.raises(AttributeError):
        _ = delegraph.nothing  # pyright: ignore[reportAttributeAccessIssue]

"""Installation: the wheel, and the steps of the Dockerfile, without Docker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from delegraph.kernels.base import shipped

ROOT = Path(__file__).parents[2]
IGNORED = (ROOT / ".dockerignore").read_text().split()


def left_out(folder: str, names: list[str]) -> set[str]:
    """Return the names in a folder that ``.dockerignore`` leaves out."""
    inside = Path("/") / Path(folder).relative_to(ROOT)
    patterns = [f"/{each}" if "**/" not in each else each.removeprefix("**/") for each in IGNORED]
    return {name for name in names if any((inside / name).match(each) for each in patterns)}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """Copy the sources of the package: a build leaves folders behind."""
    return shutil.copytree(ROOT, tmp_path_factory.mktemp("sources") / "src", ignore=left_out)


@pytest.mark.nightly
def test_wheel(sources, tmp_path):
    """``python -m build`` makes the wheel from the source distribution: pure, with all sources, and
    with compiled kernels.
    """
    pytest.importorskip("build")
    run = subprocess.run(
        [sys.executable, "-m", "build", "-o", tmp_path, sources], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "would be ignored" not in run.stderr + run.stdout
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    for layer in ("kernels", "partition", "pipeline", "cli"):
        for path in (ROOT / layer).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"delegraph/{path.relative_to(ROOT)}" in names
    assert {"delegraph/__init__.py", "delegraph/py.typed"} <= names
    assert ("delegraph/kernels/shipped.bin" in names) == shipped.runs_here()
    assert not [name for name in names if "/tests/" in name]


@pytest.mark.nightly
def test_dockerfile(sources, tmp_path):
    """All steps of the Dockerfile but FROM run in a new virtual environment; then the image's
    command runs.
    """
    folders = {"/src": sources, "/data": tmp_path / "data", "/var/cache": tmp_path / "cache"}
    folders["/tmp"] = tmp_path / "tmp"
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    venv.create(tmp_path / "venv", with_pip=True)
    env = {**os.environ, "PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"}
    env.pop("PYTHONPATH", None)
    steps, workdir, entry = [], "", ""
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        step, text = line.split(" ", 1)
        steps.append(step)
        text = re.sub(rf"(?<![\w.])({'|'.join(folders)})\b", lambda at: str(folders[at[1]]), text)
        if step == "ENV":
            name, value = text.split("=")
            env[name] = value
        elif step == "WORKDIR":
            workdir = text
        elif step == "RUN":
            run = subprocess.run(
                text, shell=True, cwd=workdir, env=env, capture_output=True, text=True
            )
            assert run.returncode == 0, f"{text}\n{run.stderr}"
        elif step == "ENTRYPOINT":
            entry = text
    assert steps == ["FROM", "ENV", "WORKDIR", "COPY", "RUN", "RUN", "WORKDIR", "ENTRYPOINT"]
    assert entry == '["delegraph"]'
    _as_pulled(tmp_path)
    version = subprocess.run(
        ["delegraph", "--version"], cwd=workdir, env=env, capture_output=True, text=True
    )
    assert version.returncode == 0, version.stderr
    question = ["delegraph", "components", "edges", "-o", "parts"]
    words = ["delegraph", "generate", "kronecker", "--scale", "6", "-o", "edges"]
    before = _times(env["NUMBA_CACHE_DIR"])
    for command in (words, question):
        subprocess.run(command, cwd=workdir, env=env, check=True, capture_output=True)
    assert _times(env["NUMBA_CACHE_DIR"]) == before, "a container compiles kernels anew"


def _as_pulled(folder: Path) -> None:
    """Set the times of files to whole seconds, as in an image that comes from a registry."""
    for path in folder.rglob("*.py"):
        os.utime(path, (path.stat().st_atime, int(path.stat().st_mtime)))


def _times(folder: str) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*.nbc")}

"""Pages with examples, all of which run."""

from __future__ import annotations

import gc
import os
import re
import subprocess
from pathlib import Path

import pytest

from delegraph.pipeline.batches.run import _END_SECONDS
from support import command_page

DOCS = Path(__file__).parents[2] / "docs"


def test_commands():
    """The page has the text of --help; another version of click may break lines elsewhere."""
    written = (DOCS / "reference" / "commands.md").read_text()
    assert written.split() == command_page.page().split(), "run tests/support/command_page.py"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets that a cluster leaves
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_python(tmp_path, monkeypatch, capsys):
    """Examples run from top to bottom, and print the output that the page shows."""
    for library in ("duckdb", "networkx", "pandas", "scipy"):
        pytest.importorskip(library)
    pages = [(DOCS / "guides" / f"{name}.md").read_text() for name in ("python", "networkx")]
    code = "\n".join(re.findall(r"```python\n(.*?)```", "\n".join(pages), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "python.md, networkx.md", "exec"), {})
    prints = re.findall(r"print\(.*?\)  # (.*)", code)
    assert len(prints) == 4
    assert capsys.readouterr().out.splitlines() == prints
    gc.collect()  # what is left is told here, not in another test


@pytest.fixture
def batches() -> list[tuple[str, str]]:
    """Return the examples of the page on batches, as pairs of a language and a text."""
    return re.findall(
        r"```(\w+)\n(.*?)```", (DOCS / "guides" / "batches.md").read_text(), re.DOTALL
    )


def test_jobs(batches, ok, edge_list, tmp_path, monkeypatch):
    """The page's jobs are planned, each after the jobs that it needs."""
    monkeypatch.chdir(tmp_path)
    edge_list([0, 1], [1, 2]).rename("edges")
    (text,) = (text for kind, text in batches if kind == "toml")
    (tmp_path / "jobs.toml").write_text(text)
    planned = ok("batch", "plan", "jobs.toml", "--memory-limit", "4GB", "--json").json["jobs"]
    assert [job["why"] for job in planned] == ["it has not run yet", "after store", "after ranks"]


@pytest.mark.parametrize(("code", "requeued"), [(143, True), (1, False), (0, False)])
def test_slurm(batches, tmp_path, code, requeued):
    """A job that a signal has ended is queued again, and no other job."""
    script, array = (text for kind, text in batches if kind == "bash")
    commands = {"srun": f"exit {code}", "scontrol": f"echo $* > {tmp_path}/asked"}
    for name, does in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    variables = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2", "SLURM_ARRAY_TASK_ID": "3"}
    env = {**os.environ, "PATH": path, **variables}
    for example in (array, script):
        assert subprocess.run(["bash", "-u", "-c", example], env=env).returncode == code
    requests = tmp_path / "asked"
    assert requests.exists() == requeued
    assert not requeued or requests.read_text() == "requeue 7\n"


def test_airflow_and_kubernetes(batches):
    """Examples can be parsed, and have the exit codes of docs/reference/events.md."""
    yaml = pytest.importorskip("yaml")
    (code,) = (text for kind, text in batches if kind == "python")
    compile(code, "batches.md", "exec")
    (text,) = (text for kind, text in batches if kind == "yaml")
    job = yaml.safe_load(text)["spec"]["jobTemplate"]["spec"]
    commands = dict(
        re.findall(
            r"^\| (\d+) \|.*\| (.*) \|$", (DOCS / "reference" / "events.md").read_text(), re.M
        )
    )
    assert commands["2"] == "no"
    assert commands["143"] == "yes"
    rules = job["podFailurePolicy"]["rules"]
    codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules[:2]}
    assert codes == {"FailJob": [1, 2], "Ignore": [143]}
    assert job["template"]["spec"]["terminationGracePeriodSeconds"] > _END_SECONDS

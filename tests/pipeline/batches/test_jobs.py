"""Files of jobs: what is wrong in them is told at once, with its line, before anything runs."""

from __future__ import annotations

import pytest

from delegraph.cli.commands.batch import _Commands
from delegraph.partition.errors import InputError
from delegraph.pipeline.batches.jobs import Job, read_jobs


@pytest.fixture
def read(tmp_path, monkeypatch):
    """The jobs of a file with this text, beside a folder ``edges``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges").mkdir()

    def read(text: str, **variables: str) -> list[Job]:
        (tmp_path / "jobs.toml").write_text(text)
        return read_jobs(tmp_path / "jobs.toml", {"date": "2026-01-02", **variables}, _Commands())

    return read


STORE = '[[job]]\nname = "store"\ncommand = "build"\nedges = "edges"\noutput = "graph.dg"\n'


def test_what_jobs_run(read):
    store, ranks, check = read(
        """
        [defaults]
        memory_limit = "1GB"
        damping = 0.9      # of PageRank alone
        retries = 2
        [[job]]
        name = "check"
        command = "validate"
        graph = "graph.dg"
        result = "out/2026-01-02/ranks"
        needs = ["ranks"]
        retries = 0
        [[job]]
        name = "ranks"
        command = "pagerank"
        graph = "graph.dg"
        output = "out/{date}/{name}"
        unweighted = true
        threads = 2
        needs = ["store"]
        timeout = "1.5h"
        """
        + STORE
        + "directed = false\n"
    )
    assert [job.name for job in (store, ranks, check)] == ["store", "ranks", "check"]
    assert ranks.line.options == [
        "pagerank",
        "--output=out/2026-01-02/ranks",
        "--memory-limit=1GB",
        "--threads=2",
        "--damping=0.9",
        "--unweighted",
    ]
    assert list(ranks.line.arguments) == ["graph.dg"]
    assert ranks.line.memory_limit == 10**9
    assert (ranks.timeout, ranks.retries, check.retries) == (5400, 2, 0)
    assert ranks.line.inputs == {"graph": "graph.dg"}
    assert "--threads=2" not in ranks.line.asked  # it gives the same by any number of them
    assert "--directed" not in store.line.options
    assert store.line.output == "graph.dg"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["line 1: no [[job]]"]),
        ("[[job]\n", ["jobs.toml: "]),
        ("[other]\n" + STORE, ["line 1: 'other': there are [defaults] and [[job]]"]),
        ("job = 3\n", ["line 1: a job begins with [[job]]", "line 1: no [[job]]"]),
        (
            "[defaults]\nmemroy_limit = 3\n" + STORE,
            ["line 2: 'memroy_limit': no job's command has such an option"],
        ),
        ("[[job]]\n", ["line 1: a job without 'command'", "line 1: a job without 'name'"]),
        (STORE + STORE, ["line 7: two jobs are called 'store'"]),
        (STORE.replace("store", "a/b"), ["line 2: 'a/b': names are of"]),
        (STORE.replace("build", "bild"), ["line 3: 'bild': no such command"]),
        (STORE.replace("edges =", "egdes ="), ["line 1: build needs 'edges'", "line 4: 'egdes': "]),
        (STORE + "partitions = 0\n", ["line 6: 'partitions': 0 is not in the range x>=1."]),
        (STORE + 'directed = "yes"\n', ["line 6: 'directed' must be true or false"]),
        (STORE + "src = true\n", ["line 6: 'src' must be text or a number"]),
        (STORE + 'memory_limit = "1XB"\n', ["line 6: 'memory_limit': '1XB' is no size"]),
        (STORE + "overwrite = true\n", ["line 6: 'overwrite': build has no such option"]),
        (STORE + 'needs = "x"\n', ["line 6: 'needs' must be names in brackets"]),
        (STORE + 'needs = ["x"]\n', ["line 2: 'store' needs 'x', which is no job"]),
        (STORE + 'needs = ["store"]\n', ["line 2: jobs that need each other: store needs store"]),
        (
            STORE + 'layout = "1d"\nthreshold = 4\n',
            ["line 3: layout 1d has no delegates: leave out"],
        ),
        (
            STORE.replace("build", "bfs").replace("edges =", "graph ="),
            ["line 3: search from --source ID or from --sources"],
        ),
        (
            STORE.replace("build", "pagerank").replace("edges =", "graph =") + "damping = 2\n",
            ["line 3: damping must be at least 0 and less than 1, not 2.0"],
        ),
        (STORE + "retries = -1\n", ["line 6: 'retries' must not be negative"]),
        (STORE + 'timeout = "soon"\n', ["line 6: 'timeout': 'soon' is no time: say 90"]),
        (STORE + "timeout = 0\n", ["line 6: 'timeout': 0 is no time: say 90"]),
        (STORE.replace("graph.dg", "{x}.dg"), ["line 5: 'output': '{x}.dg': there are {date}"]),
        (STORE.replace("graph.dg", "{name[x]}"), ["line 5: 'output': '{name[x]}': there are"]),
        (STORE + "threads = 1.5\n", ["line 6: 'threads': '1.5' is not a valid integer"]),
        (STORE + "src = 2026-01-01\n", ["line 6: 'src' must be text or a number"]),
        (STORE + 'src = "a\\u0000"\n', ["line 6: 'src' holds a null character"]),
        (
            "[defaults]  # of all\npartitions = 0\n" + STORE,
            ["line 2: 'partitions': 0 is not in the range"],
        ),
        (STORE.replace('"edges"', '"gone"'), ["line 4: gone: no such file or folder"]),
        (
            STORE + STORE.replace('"store"', '"again"'),
            ["line 7: 'again' and 'store' have one output"],
        ),
        (
            STORE + STORE.replace('"store"', '"again"').replace('"graph.dg"', '"graph.dg/more"'),
            ["line 7: 'again' writes into the output of 'store'"],
        ),
        (
            STORE
            + '[[job]]\nname = "c"\ncommand = "components"\ngraph = "graph.dg"\noutput = "c"\n',
            ["line 9: 'c' reads graph.dg, which 'store' makes: add it to needs"],
        ),
    ],
)
def test_every_fault_has_its_line(read, tmp_path, text, faults):
    with pytest.raises(InputError) as raised:
        read(text)
    told = str(raised.value).splitlines()
    assert len(told) == len(faults), told
    for line, fault in zip(told, faults, strict=True):
        assert fault in line
        assert line.startswith(str(tmp_path / "jobs.toml"))


def test_rings_are_named(read):
    jobs = "".join(
        STORE.replace("store", name).replace("graph.dg", name) + f'needs = ["{need}"]\n'
        for name, need in ("ab", "bc", "ca")
    )
    with pytest.raises(InputError, match="jobs that need each other: a needs b needs c needs a"):
        read(jobs)

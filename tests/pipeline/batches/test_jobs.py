"""Faults in a file of jobs are told with their lines before any job runs."""

from __future__ import annotations

import os

import pytest

from delegraph.cli.commands.batch import _Commands
from delegraph.partition.errors import InputError
from delegraph.pipeline.batches.job import Job
from delegraph.pipeline.batches.jobs import read_jobs


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes text to ``jobs.toml``, beside folders, a pipe, and a link to
    all of them.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges").mkdir()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    return (tmp_path / "jobs.toml").write_text


@pytest.fixture
def read(tmp_path, write):
    """Return a function that writes a text to a file of jobs and reads its jobs."""

    def read(text: str, **variables: str) -> list[Job]:
        write(text)
        return read_jobs(tmp_path / "jobs.toml", {"date": "2026-01-02", **variables}, _Commands())

    return read


STORE = '[[job]]\nname = "store"\ncommand = "build"\nedges = "edges"\noutput = "graph.dg"\n'


def output(name: str) -> str:
    """Return a build job with the given output."""
    return STORE.replace("graph.dg", name)


def reader(graph: str) -> str:
    """Return a components job; the job's fourth line names the graph."""
    return f'[[job]]\nname = "c"\ncommand = "components"\ngraph = "{graph}"\noutput = "c"\n'


def search(sources: str) -> str:
    """Return a closeness job; the job's last line has its sources."""
    return (
        '[[job]]\nname = "s"\ncommand = "closeness"\ngraph = "edges"\noutput = "s"\n'
        f"sources = {sources}\n"
    )


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
        "--damping=0.9",
        "--memory-limit=1GB",
        "--output=out/2026-01-02/ranks",
        "--threads=2",
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
        ("", ["line 1: the file has no [[job]]"]),
        ("[[job]\n", ["jobs.toml: "]),
        (
            "[other]\n" + STORE,
            ["line 1: 'other' is unknown: a job file has only [defaults] and [[job]]"],
        ),
        (
            "job = 3\n",
            ["line 1: each job must begin with [[job]]", "line 1: the file has no [[job]]"],
        ),
        (
            "[defaults]\nmemroy_limit = 3\n" + STORE,
            ["line 2: 'memroy_limit': no job's command has this option"],
        ),
        ("[[job]]\n", ["line 1: the job has no 'command'", "line 1: the job has no 'name'"]),
        (STORE + STORE, ["line 7: two jobs have the name 'store'"]),
        (STORE.replace("store", "a/b"), ["line 2: 'a/b': a name has only letters"]),
        (STORE.replace("build", "bild"), ["line 3: 'bild': no such command"]),
        (STORE.replace("edges =", "egdes ="), ["line 1: build needs 'edges'", "line 4: 'egdes': "]),
        (STORE + "partitions = 0\n", ["line 6: 'partitions': 0 is not in the range x>=1."]),
        (STORE + 'directed = "yes"\n', ["line 6: 'directed' must be true or false"]),
        (STORE + "src = true\n", ["line 6: 'src' must be text or a number"]),
        (STORE + 'memory_limit = "1XB"\n', ["line 6: 'memory_limit': '1XB' is not a size"]),
        (STORE + "overwrite = true\n", ["line 6: 'overwrite': build has no such option"]),
        (STORE + 'needs = "x"\n', ["line 6: 'needs' must be a list of names"]),
        (STORE + 'needs = ["x"]\n', ["line 2: 'store' needs 'x', which is not a job"]),
        (
            STORE + 'needs = ["stoer"]\n',
            ["needs 'stoer', which is not a job: did you mean 'store'?"],
        ),
        (STORE + "needs = [1]\n", ["line 6: 'needs' must be a list of names"]),
        (
            STORE.replace("build", "pagernk"),
            ["line 3: 'pagernk': no such command: did you mean 'pagerank'?"],
        ),
        (
            STORE + "layuot = 1\n",
            ["line 6: 'layuot': build has no such option: did you mean 'layout'?"],
        ),
        (STORE + "tiemout = 1\n", ["build has no such option: did you mean 'timeout'?"]),
        (
            "[defaults]\nretires = 3\n" + STORE,
            ["line 2: 'retires': no job's command has this option: did you mean 'retries'?"],
        ),
        (STORE.replace('"store"', '""'), ["line 2: '': a name has only letters"]),
        (STORE.replace('"build"', '""'), ["line 3: '': no such command"]),
        (STORE.replace('"edges"', '""'), ["line 4: 'edges' is empty"]),
        (STORE.replace('"graph.dg"', '""'), ["line 5: 'output' is empty"]),
        (STORE + 'scratch = ""\n', ["line 6: 'scratch' is empty"]),
        (
            output("."),
            ["line 5: 'output': '.' is, or contains, the folder that the batch is started in"],
        ),
        (
            output(".."),
            ["line 5: 'output': '..' is, or contains, the folder that the batch is started in"],
        ),
        (
            output("/"),
            ["line 5: 'output': '/' is, or contains, the folder that the batch is started in"],
        ),
        (
            output("link"),
            ["line 5: 'output': 'link' is, or contains, the folder that the batch is started in"],
        ),
        (output("jobs.toml"), ["line 5: 'output': 'jobs.toml' is the job file itself"]),
        (output("link/jobs.toml"), ["line 5: 'output': 'link/jobs.toml' is the job file"]),
        (
            output("jobs.toml.batch"),
            ["'jobs.toml.batch' is inside the folder of the batch's ledger"],
        ),
        (
            output("link/jobs.toml.batch/x"),
            ["'link/jobs.toml.batch/x' is inside the folder of the batch"],
        ),
        (output("edges"), ["line 5: 'output': 'edges' is also the input of the job, edges"]),
        (output("edges/x/y"), ["'output': 'edges/x/y' is inside the input of the job, edges"]),
        (
            output("link/edges/x"),
            ["'output': 'link/edges/x' is inside the input of the job, edges"],
        ),
        (
            output("deep").replace('"edges"', '"deep/er"'),
            ["'deep' contains the input of the job, deep"],
        ),
        (
            output("deep/out.parquet").replace('"edges"', '"deep/*"'),
            ["'deep/out.parquet' would match the input of the job, deep/*"],
        ),
        (output("x" * 250), ["(250 characters) is too long a name"]),
        (output("x" * 300 + "/y"), ["(302 characters) is too long a name"]),
        (STORE.replace('"edges"', '"pipe"'), ["line 4: pipe: neither a file nor a folder"]),
        (STORE.replace('"edges"', f'"{"e" * 300}"'), ["(300 characters): no such file or folder"]),
        (
            STORE + output("link/graph.dg").replace('"store"', '"again"'),
            ["line 7: 'again' and 'store' have the same output"],
        ),
        (
            STORE + output("graph.dg.run.json").replace('"store"', '"again"'),
            ["line 7: 'again' writes to the path of the run record of 'store'"],
        ),
        (
            reader("deep") + output("deep/x"),
            ["line 4: 'c' reads deep, and 'store' writes into it: add 'store' to needs"],
        ),
        (
            reader("graph.dg/part") + STORE,
            ["line 4: 'c' reads graph.dg/part, which 'store' writes: add 'store' to needs"],
        ),
        (
            reader("edges") + "checkpoint = nan\n",
            ["line 6: 'checkpoint': 'nan' is not a finite number"],
        ),
        (reader("edges") + "checkpoint = 1e400\n", ["'checkpoint': 'inf' is not a finite number"]),
        (
            reader("edges") + "timeout = 1e300\n",
            ["line 6: 'timeout': 1e+300 is not a time: write 90"],
        ),
        (reader("edges") + "timeout = -inf\n", ["line 6: 'timeout': -inf is not a time: write 90"]),
        (reader("edges") + f"timeout = {10**200}\n", ["'timeout': a number of about 200 digits"]),
        (
            STORE + f"threads = 0x{'f' * 290}\n",
            ["'threads': a number of about 349 digits is out of range"],
        ),
        (STORE + f"partitions = {10**200}\n", ["'partitions': a number of about 200 digits"]),
        (STORE + f'memory_limit = "{10**200}"\n', ["line 6: 'memory_limit': '1000000"]),
        (search("[[1]]"), ["line 6: 'sources' must be a list of ids, whole numbers or text"]),
        (search("[true]"), ["line 6: 'sources' must be a list of ids, whole numbers or text"]),
        (search('["a,b"]'), ["line 6: 'sources': 'a,b': an id that is empty or has a comma"]),
        (
            search(f"[1, {10**200}]"),
            ["line 6: 'sources': a number of about 200 digits is out of the range of ids"],
        ),
        (search("[]"), ["line 6: 'sources' is empty"]),
        (output("{name:>9}"), ["line 5: 'output': '{name:>9}': braces may hold {date}, {name}"]),
        (output("{name!r}"), ["line 5: 'output': '{name!r}': braces may hold {date}, {name}"]),
        (output("{name.x}"), ["line 5: 'output': '{name.x}': braces may hold {date}, {name}"]),
        (output("{"), ["line 5: 'output': '{': braces may hold {date}, {name}"]),
        (output("{}"), ["line 5: 'output': '{}': braces may hold {date}, {name}"]),
        (
            '"a\\nb" = 1\n' + STORE,
            ["line 1: 'a\\nb' is unknown: a job file has only [defaults] and [[job]]"],
        ),
        (STORE + 'needs = ["store"]\n', ["line 2: jobs that need each other: store needs store"]),
        (
            STORE + 'layout = "1d"\nthreshold = 4\n',
            ["line 3: layout 1d has no delegates: leave out"],
        ),
        (
            STORE.replace("build", "bfs").replace("edges =", "graph ="),
            ["line 3: give either --source ID or --sources"],
        ),
        (
            STORE.replace("build", "pagerank").replace("edges =", "graph =") + "damping = 2\n",
            ["line 3: damping must be at least 0 and less than 1, not 2.0"],
        ),
        (STORE + "retries = -1\n", ["line 6: 'retries' must not be negative"]),
        (STORE + 'timeout = "soon"\n', ["line 6: 'timeout': 'soon' is not a time: write 90"]),
        (STORE + "timeout = 0\n", ["line 6: 'timeout': 0 is not a time: write 90"]),
        (
            STORE.replace("graph.dg", "{x}.dg"),
            ["line 5: 'output': '{x}.dg': braces may hold {date}"],
        ),
        (
            STORE.replace("graph.dg", "{name[x]}"),
            ["line 5: 'output': '{name[x]}': braces may hold"],
        ),
        (STORE + "threads = 1.5\n", ["line 6: 'threads': '1.5' is not a whole number"]),
        (STORE + "src = 2026-01-01\n", ["line 6: 'src' must be text or a number"]),
        (STORE + 'src = "a\\u0000"\n', ["line 6: 'src' contains a null character"]),
        (
            "[defaults]  # of all\npartitions = 0\n" + STORE,
            ["line 2: 'partitions': 0 is not in the range"],
        ),
        (STORE.replace('"edges"', '"gone"'), ["line 4: gone: no such file or folder"]),
        (
            STORE + STORE.replace('"store"', '"again"'),
            ["line 7: 'again' and 'store' have the same output"],
        ),
        (
            STORE + STORE.replace('"store"', '"again"').replace('"graph.dg"', '"graph.dg/more"'),
            ["line 7: 'again' writes into the output of 'store'"],
        ),
        (
            STORE
            + '[[job]]\nname = "c"\ncommand = "components"\ngraph = "graph.dg"\noutput = "c"\n',
            ["line 9: 'c' reads graph.dg, which 'store' writes: add 'store' to needs"],
        ),
    ],
)
def test_every_fault_has_its_line(read, tmp_path, text, faults):
    with pytest.raises(InputError) as raised:
        read(text)
    lines = str(raised.value).splitlines()
    assert len(lines) == len(faults), lines
    for line, fault in zip(lines, faults, strict=True):
        assert fault in line
        assert line.startswith(str(tmp_path / "jobs.toml"))


def test_rings_are_named(read):
    jobs = "".join(
        STORE.replace("store", name).replace("graph.dg", name) + f'needs = ["{need}"]\n'
        for name, need in ("ab", "bc", "ca")
    )
    with pytest.raises(InputError, match="jobs that need each other: a needs b needs c needs a"):
        read(jobs)


def test_long_rings_are_told_shortened(read):
    """A ring of two thousand jobs that need each other is told in a short line."""
    jobs = (
        output(f"out{i}").replace('"store"', f'"j{i}"') + f'needs = ["j{(i - 1) % 2000}"]\n'
        for i in range(2000)
    )
    with pytest.raises(InputError, match=r"needs \.\.\., 2,000 jobs in all$") as raised:
        read("".join(jobs))
    assert len(str(raised.value)) < 400


def test_many_faults_are_told_in_part(read):
    with pytest.raises(InputError, match=r"jobs.toml: and 1,900 more$") as raised:
        read("[[job]]\n" * 1000)
    assert len(str(raised.value).splitlines()) == 101


def test_one_id_in_brackets_is_no_number_of_vertices(read):
    (one,) = read(search("[17]"))
    (two,) = read(search('[17, "25"]'))
    assert "--sources=17," in one.line.options
    assert "--sources=17,25" in two.line.options


def test_what_other_jobs_leave_may_be_read_after_them(read):
    """A job may read a folder of other jobs' outputs, or a file in one of the outputs, after these
    jobs.
    """
    after = 'needs = ["store"]\n'
    jobs = read(
        output("deep/a")
        + reader("deep")
        + after
        + reader("deep/a/part").replace('"c"', '"d"')
        + after
    )
    assert [job.name for job in jobs] == ["store", "c", "d"]


def test_a_glob_beside_the_output(read):
    """A glob of one level may stand beside an output: it names no file elsewhere or deeper."""
    (job,) = read(output("out/x.dg").replace('"edges"', '"dee*/*"'))
    assert job.line.output == "out/x.dg"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = " + "[" * 2000 + "]" * 2000, "line 1: more than 100 nested brackets"),
        ("#\nx = " + "{x = " * 2000 + "1" + "}" * 2000, "line 2: more than 100 nested brackets"),
        (".".join("a" * 20_000) + " = 1", "line 1: a key of more than 100 parts"),
        ('"a" . ' * 20_000 + "b = 1", "line 1: a key of more than 100 parts"),
        ("\n[" + ".".join("a" * 20_000) + "]", "line 2: a key of more than 100 parts"),
        ("x = {" + ".".join("a" * 20_000) + " = 1}", "line 1: a key of more than 100 parts"),
        ("x = 1\ny = " + "9" * 5000, "line 2: '99999999999999999999...' (5,000 characters) is too"),
        ("x = 0x" + "f" * 5000, "line 1: '0xffffffffffffffffff...' (5,002 characters) is too long"),
        ("x = -" + "1_" * 3000 + "1", "(6,002 characters) is too long for a number or a key"),
        (f'x = """\n{"[[" * 2000}"""\ny = {"9" * 400}', "line 3: '9999"),
        (f"x = '''\n{'[[' * 2000}'''\ny = {'9' * 400}", "line 3: '9999"),
        ('x = "' + '\\"' * 100_000, "Unterminated string"),
        ('"\\' * 100_000, "jobs.toml: "),
        ("x = 1 # " + "[" * 5000 + "\n# it's\nx = 2", "Cannot overwrite a value"),
        ("#" * 5_000_000, "larger than the limit of 4,194,304 bytes"),
        ("x = 1\x00", "jobs.toml: "),
    ],
    ids=range(16),
)
def test_files_that_python_would_not_survive(read, tmp_path, text, reason):
    with pytest.raises(InputError) as raised:
        read(text)
    assert reason in str(raised.value)
    assert len(str(raised.value)) < 300 + len(str(tmp_path))


def test_what_text_and_comments_hold_is_passed_over(read):
    text = output("out/" + ".".join("a" * 90)) + f'src = "{"9" * 400}{"[." * 300}"\n'
    (job,) = read(f"# {'.' * 500} {'[' * 500}\n{text}")
    assert max(map(len, job.line.options)) > 1000


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "missing", "latin"])
def test_files_of_jobs_that_are_none(tmp_path, kind):
    path = tmp_path / "jobs.toml"
    make = {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
        "missing": lambda: None,
        "latin": lambda: path.write_bytes(b"x = '\xe4'"),
    }
    make[kind]()
    reasons = "larger than|cannot be read: "
    with pytest.raises(InputError, match=rf"jobs\.toml: ({reasons})") as raised:
        read_jobs(path, {}, _Commands())
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--set", "x=1", "--set", "x=2"), "--set 'x' is given twice"),
        (("--set", "x=1", "--set", "x=1"), "--set 'x' is given twice"),
        (("--set", "name=x"), "--set name: {name} always stands for the name of the job"),
        (
            ("--set", "9" * 5000),
            "--set '99999999999999999999...' (5,000 characters): write it as KEY=VALUE",
        ),
        (("--memory-limit", "0"), "'0' is not a size of memory"),
        (
            ("--jobs", "2000", "--memory-limit", "1000"),
            "the memory limit of 1 kB is too small for 2,000 jobs at once",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_options_of_batches(delegraph, write, words, reason, command):
    write(STORE)
    run = delegraph("batch", command, "jobs.toml", *words)
    assert run.code == 2
    assert reason in run.err.splitlines()[-1]


def test_long_values_of_set(delegraph, write):
    write(STORE + 'partitions = "{x}"\n')
    run = delegraph("batch", "plan", "jobs.toml", "--set", f"x={'9' * 5000}")
    assert run.code == 2
    (line,) = run.err.splitlines()
    assert "line 6: 'partitions': '99999999999999999999...' (5,000 characters) is more than" in line


@pytest.mark.parametrize("name", ["ledger.sqlite", "lock", ""])
@pytest.mark.parametrize("kind", ["pipe", "folder", "file"])
def test_ledgers_that_are_none(delegraph, write, tmp_path, name, kind):
    """Commands do not wait for a ledger that is a pipe, a folder or an empty file; a full disk may
    leave an empty one.
    """
    write(STORE)
    folder = tmp_path / "jobs.toml.batch"
    path = folder / name if name else folder
    if name:
        folder.mkdir()
    make = {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "file": path.touch}
    make[kind]()
    for command in ("status", "plan"):
        run = delegraph("batch", command, "jobs.toml")
        assert run.code in (0, 2), run.err
        assert "Traceback" not in run.err
        assert len(run.err.splitlines()) <= 1

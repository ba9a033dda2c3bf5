"""Bad input: exit 2, one line that names what is wrong, nothing written."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def refused(delegraph, tmp_path):
    """Return a function that runs a command and checks its refusal: exit 2, one line, no file
    changed.
    """

    def run(*args, says: tuple[str, ...] = ()) -> None:
        before = sorted(tmp_path.rglob("*"))
        run = delegraph(*args)
        assert run.code == 2, (run.code, run.out, run.err)
        assert run.out == ""
        line = run.err.strip().splitlines()[-1]
        for part in says:
            assert str(part) in line
        if "Usage:" not in run.err:
            assert len(run.err.strip().splitlines()) == 1, run.err
        assert sorted(tmp_path.rglob("*")) == before

    return run


@pytest.fixture(params=["build", "bfs"])
def command(request, tmp_path):
    """Return a function that gives the arguments of a command that reads the given edges."""
    out = ("-o", tmp_path / "out")
    return lambda path: (
        ("build", path, *out) if request.param == "build" else ("bfs", path, "--source", 0, *out)
    )


def write(path, src, dst, **options):
    pq.write_table(pa.table({"src": src, "dst": dst}), path, **options)
    return path


def test_no_such_file(refused, command, tmp_path):
    refused(*command(tmp_path / "none.parquet"), says=("none.parquet", "no such file"))
    refused(*command(tmp_path / "*.parquet"), says=("no file matches",))


def test_empty_folder(refused, command, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "README.txt").touch()
    refused(*command(tmp_path / "empty"), says=("empty", "no Parquet files"))


@pytest.mark.parametrize("content", [b"", b"src,dst\n1,2\n", b"PAR1" + bytes(100)])
def test_not_parquet(refused, command, tmp_path, content):
    (tmp_path / "edges.parquet").write_bytes(content)
    refused(*command(tmp_path / "edges.parquet"), says=("edges.parquet", "not a Parquet file"))


def test_truncated(refused, command, tmp_path):
    path = write(tmp_path / "e.parquet", np.arange(1000), np.arange(1000))
    path.write_bytes(path.read_bytes()[:-100])
    refused(*command(path), says=("e.parquet", "truncated"))


def test_damaged_row_group_of_one_file_of_many(refused, command, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        path = tmp_path / "in" / f"{name}.parquet"
        write(path, np.arange(5000), np.arange(5000), row_group_size=1000, compression="zstd")
    path = tmp_path / "in" / "b.parquet"
    content = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(3).column(0).data_page_offset
    content[start : start + 60] = bytes(60)
    path.write_bytes(content)
    refused(*command(tmp_path / "in"), says=("b.parquet", "row group 3"))


def test_missing_column(refused, command, tmp_path):
    pq.write_table(pa.table({"from": [1], "to": [2]}), tmp_path / "e.parquet")
    refused(*command(tmp_path / "e.parquet"), says=("e.parquet", "'src'", "from, to", "--src"))


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (pa.array([0.5, 1.0]), "double"),
        (pa.array([True, False]), "bool"),
        (pa.array([[1], [2]]), "list"),
        (pa.array([{"a": 1}, {"a": 2}]), "struct"),
        (pa.array([b"a", b"b"]), "binary"),
        (pa.array([None, None]), "null"),
    ],
    ids=str,
)
def test_ids_of_a_type_that_is_none(refused, command, tmp_path, column, named):
    path = write(tmp_path / "e.parquet", pa.array([1, 2]), column)
    refused(*command(path), says=("e.parquet", "'dst'", named))


@pytest.mark.parametrize("values", [[1, 2, None, 4], ["a", "b", None, "d"]], ids=str)
def test_null_ids(refused, command, tmp_path, values):
    source = values[:2] * 2
    path = write(tmp_path / "e.parquet", source, values, row_group_size=2)
    refused(*command(path), says=("e.parquet", "'dst'", "null", "row group 1"))


def test_types_that_do_not_compare(refused, command, tmp_path):
    path = write(tmp_path / "e.parquet", pa.array([1]), pa.array(["a"]))
    refused(*command(path), says=("'src'", "int64", "'dst'", "string"))
    path = write(tmp_path / "e.parquet", pa.array([1]), pa.array([1], pa.uint64()))
    refused(*command(path), says=("uint64", "no 64-bit type"))


def test_zero_rows(refused, command, tmp_path):
    path = write(tmp_path / "e.parquet", pa.array([], pa.int64()), pa.array([], pa.int64()))
    refused(*command(path), says=("zero rows",))


@pytest.mark.parametrize("through", ["edges", "store"])
@pytest.mark.parametrize(
    ("ids", "source", "says"),
    [
        ([1, 2], "7", "7"),
        ([1, 2], "0", "0"),
        ([1, 2], "-1", "-1"),
        ([1, 2], "one", "not an integer"),
        ([1, 2], "1.5", "not an integer"),
        ([1, 2], str(2**63), "outside int64"),
        ([-(2**40), 2**40], "3", "3"),
        (["a", "b"], "c", "'c'"),
    ],
)
def test_source(refused, ok, tmp_path, ids, source, says, through):
    graph = write(tmp_path / "e.parquet", ids[:1], ids[1:])
    if through == "store":
        ok("build", graph, "-o", tmp_path / "graph.dg")
        graph = tmp_path / "graph.dg"
    refused("bfs", graph, f"--source={source}", "-o", tmp_path / "out", says=("source", says))


def test_output_that_exists(refused, command, ok, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    (tmp_path / "out").mkdir()
    refused(*command(path), says=("out exists", "name another output, or remove it"))
    (tmp_path / "out").rmdir()
    ok(*command(write(tmp_path / "zero.parquet", [0], [2])))
    refused(*command(path), says=("out exists", "--overwrite"))


def test_a_store_or_a_result_is_no_edge_list(refused, ok, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    ok("build", path, "-o", tmp_path / "graph.dg")
    ok("bfs", path, "--source", 1, "-o", tmp_path / "distances")
    out = ("-o", tmp_path / "out")
    refused("build", tmp_path / "graph.dg", *out, says=("is a store",))
    columns = ("--src", "parent", "--dst", "vertex")
    refused("build", tmp_path / "distances", *out, *columns, says=("is a result",))


def test_more_rows_than_the_disk_holds(delegraph, tmp_path):
    """A full disk gives exit 1, not 2, as the command was used rightly."""
    run = delegraph(*f"generate kronecker --scale 48 -o {tmp_path}/out".split())
    assert run.code == 1
    assert "bytes" in run.err
    assert "free" in run.err
    assert not list(tmp_path.iterdir())


def test_output_below_a_file(refused, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    for output in (path / "out", path / "deep" / "out"):
        refused("build", path, "-o", output, says=(f"{path} is not a folder", str(output)))
    refused("build", path, "-o", "/proc/none/out", says=("/proc/none cannot be created",))
    refused("build", path, "-o", tmp_path / "no" / ".." / "out", says=("no such folder",))


@pytest.mark.parametrize(
    "wrong",
    [
        ("--threshold", 0),
        ("--threshold", -3),
        ("--threshold", "many"),
        ("--partitions", 0),
        ("--partitions", -1),
        ("--order", "size"),
        ("--layout", "3d"),
        ("--grid", "2"),
        ("--grid", "2x2x2"),
        ("--threads", 0),
        ("--no-such-option",),
    ],
    ids=str,
)
def test_options_out_of_range(refused, tmp_path, wrong):
    path = write(tmp_path / "e.parquet", [1], [2])
    refused("build", path, "-o", tmp_path / "out", *wrong, says=(wrong[0].lstrip("-"),))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("--layout 2d --partitions 4 --threshold 3", "no delegates: leave out --threshold"),
        ("--layout 1d --partitions 4 --threshold 3", "no delegates: leave out --threshold"),
        ("--layout 2d --partitions 4 --grid 2x3", "a grid of 2x3 has 6 partitions, not 4"),
        ("--layout 2d --grid 0x3", "not 0x3"),
        ("--layout 2d --grid 100x100", "9,999"),
        ("--partitions 65", "too many for 1 rows: give at most 64"),
        ("--layout 2d --grid 9x9", "too many for 1 rows: give at most 64"),
        ("--layout 1d --grid 1x4", "is only for --layout 2d"),
        ("--grid 2x2", "is only for --layout 2d"),
    ],
)
def test_layouts_that_are_none(refused, command, tmp_path, wrong, says):
    path = write(tmp_path / "e.parquet", [1], [2])
    refused(*command(path), *wrong.split(), says=(says,))


def test_one_column_for_both_ends(refused, command, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    refused(*command(path), "--src", "dst", says=("both",))


def test_too_many_partitions(refused, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    refused("build", path, "-o", tmp_path / "out", "--partitions", 10_000, says=("9,999",))


def test_values_from_python(tmp_path):
    import delegraph

    path = write(tmp_path / "e.parquet", [1], [2])
    wrongs: list[dict[str, Any]] = [{"order": "rank"}, {"threads": 0}, {"partitions": 0}]
    wrongs += [{"layout": "csr"}, {"layout": "2d", "threshold": 3}]
    for wrong in wrongs:
        with pytest.raises(delegraph.InputError):
            delegraph.build(path, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_output_that_cannot_be_made(refused, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    refused("build", path, "-o", tmp_path / ("x" * 245), says=("cannot be written",))


def test_debug_keeps_the_exit_code(delegraph, tmp_path):
    run = delegraph("info", tmp_path / "none", "--debug")
    assert run.code == 2
    assert "Traceback" in run.err


def test_negative_depth(refused, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    refused(*f"bfs {path} --source 1 --max-depth=-1 -o {tmp_path}/out".split())


def test_build_options_on_a_store(refused, ok, tmp_path):
    path = write(tmp_path / "e.parquet", [1], [2])
    ok("build", path, "-o", tmp_path / "graph.dg")
    graph = tmp_path / "graph.dg"
    refused(*f"bfs {graph} --directed --source 1 -o {tmp_path}/out".split(), says=("is a store",))


@pytest.fixture
def store(ok, tmp_path):
    rng = np.random.default_rng(0)
    path = write(tmp_path / "e.parquet", *rng.integers(0, 500, (2, 3000)))
    ok("build", path, "-o", tmp_path / "graph.dg", "--partitions", 2)
    return tmp_path / "graph.dg"


def files_of(store):
    return sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())


def test_store_of_another_format(refused, store, tmp_path):
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["format_version"] = 99
    (store / "manifest.json").write_text(json.dumps(manifest))
    refused(*f"bfs {store} --source 1 -o {tmp_path}/out".split(), says=("format 99", "build"))


@pytest.mark.slow
def test_a_flipped_byte_in_any_file_is_found(refused, store, tmp_path):
    files = files_of(store)
    assert len(files) == 3 + 2 * 4 * 2
    for name in files:
        content = (store / name).read_bytes()
        for at in {0, len(content) // 2, len(content) - 2}:
            damaged = bytearray(content)
            damaged[at] ^= 4
            (store / name).write_bytes(damaged)
            refused(*f"bfs {store} --source 1 -o {tmp_path}/out".split(), says=(store,))
        (store / name).write_bytes(content)


def test_truncated_and_missing_store_files(refused, store, tmp_path):
    for name in files_of(store):
        content = (store / name).read_bytes()
        (store / name).write_bytes(content[:-9])
        refused(*f"bfs {store} --source 1 -o {tmp_path}/out".split(), says=(store,))
        (store / name).unlink()
        refused(*f"bfs {store} --source 1 -o {tmp_path}/out".split(), says=(store,))
        (store / name).write_bytes(content)


@pytest.mark.parametrize("where", ["none", "e.parquet", "empty"])
def test_bench_wants_a_store(refused, tmp_path, where):
    write(tmp_path / "e.parquet", [1], [2])
    (tmp_path / "empty").mkdir()
    refused("bench", tmp_path / where, says=("not a store",))


def test_validate_wants_a_result(refused, store, tmp_path):
    refused("validate", store, tmp_path / "none", says=("not a result",))
    refused("validate", store, tmp_path / "e.parquet", says=("column", "distance", "missing"))


def test_ranks_by_weights_are_judged_by_weights(refused, ok, edge_list, tmp_path):
    edges = edge_list([0, 1, 2], [1, 2, 0], w=[1, 5, 2])
    ok("pagerank", edges, "-o", tmp_path / "ranks", "--weight", "w")
    refused("validate", edges, tmp_path / "ranks", says=("--weight COL",))
    ok("validate", edges, tmp_path / "ranks", "--weight", "w")
    unweighted = "--weight", "w", "--unweighted"
    ok("pagerank", edges, "-o", tmp_path / "alike", *unweighted)
    ok("validate", edges, tmp_path / "alike")


def test_info_of_nothing(refused, tmp_path):
    refused("info", tmp_path / "none", says=("no such file",))


def test_bench_without_an_edge_to_follow(refused, ok, tmp_path):
    ok("build", write(tmp_path / "e.parquet", [1], [1]), "-o", tmp_path / "graph.dg")
    refused("bench", tmp_path / "graph.dg", says=("no vertex has an edge",))


LINES = (
    ("info", "GRAPH"),
    ("plan", "GRAPH"),
    ("build", "GRAPH", "-o", "OUT"),
    ("report", "GRAPH", "-o", "OUT.html"),
    ("validate", "RESULT", "GRAPH"),
    ("validate", "GRAPH", "RESULT"),
    ("bench", "GRAPH"),
    ("bfs", "GRAPH", "--source", "1", "-o", "OUT"),
    ("sssp", "GRAPH", "--source", "1", "--weight", "w", "-o", "OUT"),
    *((name, "GRAPH", "-o", "OUT") for name in ("components", "pagerank")),
    *((name, "GRAPH", "-o", "OUT") for name in ("closeness", "betweenness", "eccentricity")),
)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
@pytest.mark.parametrize("name", ["links.csv", "links.feather", "links.pkl", "soc.txt.gz"])
def test_a_file_of_another_format(refused, tmp_path, line, name):
    """The refusal of a file that is no Parquet names a way to make an edge list: convert, or a line
    of Python.
    """
    table = pa.table({"src": [1], "dst": [2]})
    if name == "links.feather":
        feather.write_feather(table, tmp_path / name)
    elif name == "links.pkl":
        (tmp_path / name).write_bytes(pickle.dumps(table.to_pydict()))
    else:
        (tmp_path / name).write_text("src,dst\n1,2\n")
    result = tmp_path / "result"
    pq.write_table(pa.table({"vertex": [1], "distance": [0], "parent": [1]}), result)
    paths = {"GRAPH": tmp_path / name, "RESULT": result, "OUT": tmp_path / "out"}
    says = "python -c" if name in ("links.feather", "links.pkl") else "delegraph convert"
    words = [paths.get(word, word.replace("OUT", f"{tmp_path}/out")) for word in line]
    refused(*words, says=(name, says))

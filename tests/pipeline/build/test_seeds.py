"""Seeds are any 64-bit numbers: they give the same rows on every machine, and facts name them."""

from __future__ import annotations

import json
import sys
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

from delegraph.kernels.gpu import device as devices
from delegraph.kernels.gpu.device import open_device
from delegraph.kernels.prepare.generate import philox
from delegraph.partition.disk.outputs import facts_of
from delegraph.partition.errors import InputError
from delegraph.pipeline.build.generate import Recipe
from support import emulator
from support.kernels import callable_from_python

PHILOX = callable_from_python(philox)
SEEDS = [2**63 - 1, 2**63, 2**64 - 1]
SHAPES = {
    "kronecker": {"scale": 6},
    "uniform": {"scale": 6},
    "grid": {"height": 9, "width": 7, "drop": 0.3},
    "blocks": {"vertices": 90, "blocks": 7, "degree": 5, "mixing": 0.3, "sizes": "zipf"},
}
ON_DEVICES = ("kronecker", "uniform", "grid")


def words(counter: int, block: int, seed: int) -> tuple[int, ...]:
    """Return Philox4x32-10 by the paper (Salmon et al., SC 2011), in integers of unlimited
    width.
    """
    mask = 2**32 - 1
    at, keys = [counter & mask, counter >> 32, block, 0], [seed & mask, seed >> 32]
    for _ in range(10):
        one, two = 0xD2511F53 * at[0], 0xCD9E8D57 * at[2]
        at = [two >> 32 ^ at[1] ^ keys[0], two & mask, one >> 32 ^ at[3] ^ keys[1], one & mask]
        keys = [(keys[0] + 0x9E3779B9) & mask, (keys[1] + 0xBB67AE85) & mask]
    return tuple(at)


@pytest.mark.parametrize("seed", SEEDS)
def test_words_are_the_papers(seed):
    for counter, block in ((0, 0), (7, 2**32 - 1), (2**40, 3)):
        output = PHILOX(counter, block, np.uint64(seed))
        assert tuple(map(int, output)) == words(counter, block, seed)


@pytest.mark.skipif(not emulator.able(), reason="g++ compiles the kernels")
@pytest.mark.parametrize("kind", ON_DEVICES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_rows_on_a_device(monkeypatch, kind, seed):
    monkeypatch.setitem(sys.modules, "cupy", emulator.cupy)
    devices._compile.cache_clear()
    recipe = Recipe(kind, seed=seed, **SHAPES[kind])
    on_device = recipe.rows_on(open_device(), 3, recipe.candidates)
    devices._compile.cache_clear()
    on_cpu = recipe.rows(3, recipe.candidates)
    for column, wanted in zip(on_device, on_cpu, strict=True):
        assert column.get().tolist() == wanted.tolist()


def test_blocks_are_not_made_on_a_device():
    recipe = Recipe("blocks", **SHAPES["blocks"])
    with pytest.raises(InputError, match="on CPUs only"):
        recipe.rows_on(cast(Any, None), 0, 1)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_facts_make_the_rows_again(ok, tmp_path, kind, seed):
    out = tmp_path / "edges"
    flags = [str(word) for name, value in SHAPES[kind].items() for word in (f"--{name}", value)]
    printed = ok("generate", kind, *flags, "--seed", seed, "-o", out, "--json").json
    table = pq.read_table(out)
    facts = facts_of(table.schema.metadata, "edge list")
    assert facts is not None
    recipe = facts["recipe"]
    assert recipe == json.loads((tmp_path / "edges.run.json").read_bytes())["recipe"]
    assert printed["seed"] == recipe["seed"] == seed
    rebuilt = Recipe(**recipe)
    rows = rebuilt.rows(0, rebuilt.candidates)
    assert [table[name].to_pylist() for name in ("src", "dst")] == [end.tolist() for end in rows]


@pytest.mark.parametrize("seed", [2**64, -1, 10**30, "0x10"])
def test_what_is_no_such_number(delegraph, tmp_path, seed):
    run = delegraph("generate", "uniform", "--scale", 5, "--seed", seed, "-o", tmp_path / "edges")
    assert run.code == 2
    assert not list(tmp_path.iterdir())

"""Generated rows depend on the recipe alone."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.kernels.prepare import generate
from delegraph.partition.errors import InputError
from delegraph.pipeline.build.generate import Recipe
from support.kernels import callable_from_python

RECIPES = [
    Recipe("kronecker", scale=9, seed=3),
    Recipe("uniform", scale=9, seed=3, edge_factor=4),
    Recipe("grid", height=30, width=50, drop=0.3, seed=3),
    Recipe("blocks", vertices=1000, blocks=7, degree=8, mixing=0.3, sizes="zipf", seed=3),
]


def test_philox_known_answers():
    """Philox gives the test vectors that the authors of Philox4x32-10 publish (all zeros, all
    ones).
    """
    zeros = callable_from_python(generate.philox)(0, 0, np.uint64(0))
    assert [f"{int(word):08x}" for word in zeros] == [
        "6627e8d5",
        "e169c58d",
        "bc57ac4c",
        "9b00dbd8",
    ]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.kind)
def test_rows_do_not_depend_on_chunks(recipe):
    whole = np.stack(recipe.rows(0, recipe.candidates))
    cuts = [0, 1, 100, 777, recipe.candidates]
    parts = [np.stack(recipe.rows(*pair)) for pair in itertools.pairwise(cuts)]
    assert np.array_equal(whole, np.concatenate(parts, axis=1))
    other = replace(recipe, seed=4)
    assert not np.array_equal(whole, np.stack(other.rows(0, other.candidates)))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.kind)
def test_all_bits_of_the_seed_count(recipe):
    low, high = (replace(recipe, seed=seed).rows(0, 700) for seed in (5, 2**63 + 5))
    assert [end.tolist() for end in low] != [end.tolist() for end in high]


def test_permutation_is_a_bijection():
    for scale in (1, 2, 7, 12):
        keys = generate.permutation_keys(np.uint64(5))
        permute = callable_from_python(generate._permute)
        images = {int(permute(np.uint64(v), scale, keys)) for v in range(1 << scale)}
        assert images == set(range(1 << scale))


def test_kronecker_quadrants():
    """Scale 1 is one choice of quadrant for each row, so the four shares of rows are A, B, C, D."""
    recipe = Recipe("kronecker", scale=1, edge_factor=50_000)
    src, dst = recipe.rows(0, recipe.candidates)
    shares = np.sort(np.bincount(2 * src + dst, minlength=4) / recipe.candidates)
    assert np.allclose(shares, [0.05, 0.19, 0.19, 0.57], atol=0.01)


def test_kronecker_is_skewed_and_permuted():
    recipe = Recipe("kronecker", scale=14)
    src, dst = recipe.rows(0, recipe.candidates)
    degree = np.bincount(np.concatenate([src, dst]), minlength=1 << 14)
    assert degree.max() > 50 * degree.mean()
    hubs = np.argsort(degree)[-16:]
    assert hubs.min() < 1 << 12 < 3 << 12 < hubs.max()  # not all among the low numbers


def test_grid():
    src, dst = Recipe("grid", height=3, width=2).rows(0, 12)
    pairs = set(zip(src.tolist(), dst.tolist(), strict=True))
    assert pairs == {(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)}
    drawn_src = Recipe("grid", height=300, width=300, drop=0.2).rows(0, 180_000)[0]
    assert len(drawn_src) == pytest.approx(0.8 * 2 * 300 * 299, rel=0.02)


def blocks_of(recipe: Recipe) -> np.ndarray:
    """Return the block of each vertex."""
    truth = replace(recipe, truth=True)
    vertex, block = truth.columns(0, truth.candidates)
    assert np.array_equal(np.sort(vertex), np.arange(recipe.vertices))
    return block[np.argsort(vertex)]


@pytest.mark.parametrize("vertices", [2, 3, 4, 64, 65, 1000])
def test_every_vertex_is_in_a_block(vertices):
    """Also of a number of vertices that is no power of two. Sizes differ by one at most."""
    for blocks in {1, 2, vertices // 2} - {0}:
        if 2 * blocks <= vertices:
            sizes = np.bincount(blocks_of(Recipe("blocks", vertices=vertices, blocks=blocks)))
            assert len(sizes) == blocks
            assert sizes.max() <= sizes.min() + 1


def test_sizes_by_zipf():
    sizes = np.bincount(blocks_of(Recipe("blocks", vertices=100_000, blocks=100, sizes="zipf")))
    assert (np.diff(sizes) <= 0).all()
    assert sizes.sum() == 100_000
    rank = np.arange(1, 101)
    assert np.allclose(sizes - 2, (sizes[0] - 2) / rank, atol=2)
    least = blocks_of(Recipe("blocks", vertices=2000, blocks=1000, sizes="zipf"))
    assert (np.bincount(least) == 2).all()


@pytest.mark.parametrize("sizes", ["equal", "zipf"])
@pytest.mark.parametrize("mixing", [0.0, 0.3, 1.0])
def test_mixing(mixing, sizes):
    """Rows leave every block as often as asked for, and none is a self-loop."""
    recipe = Recipe("blocks", vertices=9000, blocks=9, mixing=mixing, sizes=sizes)
    block = blocks_of(recipe)
    src, dst = recipe.rows(0, recipe.candidates)
    assert len(src) == 9000 * 16 // 2
    assert (src != dst).all()
    leaves = block[src] != block[dst]
    assert leaves.mean() == pytest.approx(mixing, abs=0.01)
    for begin in range(9):
        assert leaves[block[src] == begin].mean() == pytest.approx(mixing, abs=0.04)


def test_blocks_are_even():
    """Each pair of vertices of a block is as probable, and so is each pair of two blocks: chi^2."""
    recipe = Recipe("blocks", vertices=12, blocks=3, degree=20_000, mixing=0.5)
    block = blocks_of(recipe)
    src, dst = recipe.rows(0, recipe.candidates)
    counts = np.bincount(12 * src + dst, minlength=144).reshape(12, 12)
    same = block[:, None] == block
    for pairs in (same & ~np.eye(12, dtype=bool), ~same):
        drawn = counts[pairs]
        chi2 = ((drawn - drawn.mean()) ** 2 / drawn.mean()).sum()
        assert abs(chi2 - len(drawn)) < 5 * np.sqrt(2 * len(drawn))


def test_ids_tell_nothing_of_blocks():
    block = blocks_of(Recipe("blocks", vertices=10_000, blocks=10))
    thirds = np.array([np.bincount(part, minlength=10) for part in np.array_split(block, 3)])
    assert np.allclose(thirds, 333, atol=100)


def test_width_follows_scale():
    assert Recipe("kronecker", scale=31).dtype == np.int32
    assert Recipe("kronecker", scale=32).dtype == np.int64
    src, _ = Recipe("kronecker", scale=40).rows(0, 1000)
    assert src.max() > 2**32


def test_command_writes_the_rows(ok, tmp_path):
    document = ok(
        *["generate", "kronecker", "--scale", "9", "--seed", "3", "--json"],
        "-o",
        tmp_path / "e",
        "--threads",
        2,
    ).json
    table = pq.read_table(tmp_path / "e")
    src, dst = RECIPES[0].rows(0, RECIPES[0].candidates)
    assert table["src"].to_numpy().tolist() == src.tolist()
    assert table["dst"].to_numpy().tolist() == dst.tolist()
    assert document["rows"] == len(src)


def test_command_writes_the_blocks(ok, delegraph, tmp_path):
    flags = "--vertices", 1000, "--blocks", 7, "--degree", 8, "--mixing", 0.3, "--sizes", "zipf"
    edges, truth = tmp_path / "edges", tmp_path / "truth"
    ok("generate", "blocks", *flags, "--seed", 3, "--truth", "-o", truth)
    document = ok("generate", "blocks", *flags, "--seed", 3, "-o", edges, "--json").json
    src, dst = RECIPES[3].rows(0, RECIPES[3].candidates)
    table = pq.read_table(edges)
    assert [table[name].to_pylist() for name in ("src", "dst")] == [src.tolist(), dst.tolist()]
    assert document["rows"] == len(src)
    table = pq.read_table(truth)
    assert table.column_names == ["vertex", "block"]
    assert table["block"].to_numpy()[np.argsort(table["vertex"])].tolist() == (
        blocks_of(RECIPES[3]).tolist()
    )
    again = "generate", "blocks", *flags, "--seed", 3, "--truth", "-o"
    assert "already generated" in ok(*again, truth).err
    run = delegraph(*again, edges, "--overwrite")
    assert run.code == 2
    assert "is not a table of blocks" in run.err


def test_planted_blocks_are_found(tmp_path):
    """Leiden's method finds blocks that few edges leave, and nothing else."""
    asked: dict[str, Any] = {"vertices": 2000, "blocks": 20, "mixing": 0.1}
    package.generate("blocks", tmp_path / "edges", **asked)
    found = package.leiden(tmp_path / "edges").table.sort_by("vertex")
    block = blocks_of(Recipe("blocks", **asked))
    pairs = set(zip(block[found["vertex"].to_numpy()], found["community"].to_pylist(), strict=True))
    assert len(pairs) == 20


@pytest.mark.parametrize("scale", [9, 40])
def test_weights(scale):
    """Weights are from 1 to 255, equal in either order of the ends, and others for another seed."""
    one, other = (Recipe("uniform", scale=scale, seed=seed) for seed in (3, 4))
    src, dst = one.rows(0, 5000)
    weight = one.weights(src, dst)
    assert (weight == one.weights(dst, src)).all()
    assert (weight != other.weights(src, dst)).any()
    counts = np.bincount(weight, minlength=256)
    assert len(counts) == 256
    assert counts[0] == 0
    assert counts[1:].min() > 0
    assert counts.max() < 3 * counts[1:].mean()


def test_a_column_of_weights(ok, tmp_path):
    flags = "kronecker", "--scale", 9, "--seed", 3
    ok("generate", *flags, "--weighted", "-o", tmp_path / "e")
    table = pq.read_table(tmp_path / "e")
    ends = RECIPES[0].rows(0, RECIPES[0].candidates)
    assert table["src"].to_numpy().tolist() == ends[0].tolist()
    assert table["weight"].to_numpy().tolist() == RECIPES[0].weights(*ends).tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "kronecker", "scale": 0},
        {"kind": "uniform", "scale": 99},
        {"kind": "uniform", "scale": 9, "edge_factor": 0},
        {"kind": "grid", "height": 0, "width": 5},
        {"kind": "grid", "height": 1, "width": 1},
        {"kind": "grid", "height": 5, "width": 5, "drop": 1.0},
        {"kind": "kronecker", "scale": 9, "seed": -1},
        {"kind": "blocks", "vertices": 9, "blocks": 5},
        {"kind": "blocks", "vertices": 9, "blocks": 0},
        {"kind": "blocks", "vertices": 2**49, "blocks": 5},
        {"kind": "blocks", "vertices": 2**40, "blocks": 2**25},
        {"kind": "blocks", "vertices": 9, "blocks": 2, "degree": 0},
        {"kind": "blocks", "vertices": 9, "blocks": 2, "mixing": 1.1},
        {"kind": "blocks", "vertices": 9, "blocks": 2, "mixing": -0.1},
        {"kind": "blocks", "vertices": 9, "blocks": 1, "mixing": 0.1},
        {"kind": "blocks", "vertices": 9, "blocks": 2, "sizes": "other"},
        {"kind": "blocks", "vertices": 9, "blocks": 2, "truth": True, "weighted": True},
    ],
)
def test_impossible_recipes(wrong):
    with pytest.raises(InputError):
        Recipe(**wrong)

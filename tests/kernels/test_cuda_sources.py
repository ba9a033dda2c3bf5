"""Every CUDA source compiles for devices of several ages, on a machine without a device."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from delegraph.kernels.gpu import check as gpu_check
from delegraph.kernels.gpu import device, made_rows
from delegraph.kernels.gpu import graph as device_graph
from delegraph.kernels.gpu import prepare as gpu_prepare
from delegraph.kernels.gpu import search as gpu_search
from delegraph.kernels.gpu import slices as gpu_slices
from delegraph.kernels.gpu_pieces import communities as gpu_communities
from delegraph.kernels.gpu_pieces import folding, tracing
from delegraph.kernels.gpu_pieces import intersect as gpu_intersect
from delegraph.kernels.gpu_pieces import labelling as gpu_labelling
from delegraph.kernels.gpu_pieces import tally as gpu_tally
from delegraph.kernels.gpu_pieces import trees as gpu_trees
from delegraph.kernels.gpu_programs import betweenness as gpu_betweenness
from delegraph.kernels.gpu_programs import gather as gpu_gather
from delegraph.kernels.gpu_programs import meeting, shared_paths, shared_walks, stored_rows
from delegraph.kernels.gpu_programs import pagerank as gpu_pagerank
from delegraph.kernels.gpu_programs import rows as program_rows
from delegraph.kernels.gpu_programs import searches as gpu_searches
from delegraph.kernels.gpu_programs import shortest_paths as gpu_shortest_paths
from delegraph.kernels.gpu_programs import tiles as program_tiles
from delegraph.kernels.gpu_ranks import check as rank_check
from delegraph.kernels.gpu_ranks import (
    delegate_rows,
    delegate_structures,
    grid_mail,
    grid_rows,
    grid_structures,
    structures,
)
from delegraph.kernels.gpu_ranks import search as rank_search
from support.marks import mostly_slow

OFFSETS = ("u32", "u64")
DISTANCES = ("u8", "int")
BOOLS = ("false", "true")
KINDS = tuple(tracing.TYPES.values())
WORDS = ("IntegerSum", "CountSum", "Or", "Min")


def instances(architecture: int) -> dict[str, list[str]]:
    """Return the functions of each source that the package asks for; for older devices, large
    sources have each choice once.
    """
    blocks = (device._PORTABLE_BLOCKS, device.MOST_BLOCKS) if architecture >= 90 else (1,)
    wide = ", ".join(map(str, gpu_search.WIDE_LAUNCH))
    narrow = gpu_search.NARROW_THREADS
    together, tiled, paths, sources, apart = (
        ", ".join(map(str, launch))
        for launch in (
            program_rows.LAUNCH,
            program_tiles.LAUNCH,
            gpu_shortest_paths.LAUNCH,
            gpu_betweenness.LAUNCH,
            gpu_searches.APART,
        )
    )
    searches = list(itertools.product(OFFSETS, DISTANCES, BOOLS))
    if architecture < 90:
        searches = list(zip(OFFSETS, DISTANCES, BOOLS, strict=True))
    operators = "Sum", "WeightedSum<u32>", "WeightedSum<float>"
    amounts = "UnitAmounts", "ScaledWeights<u32>", "ScaledWeights<float>"

    def walks(name: str, single: bool = True) -> list[str]:
        in_double = (*itertools.product(OFFSETS, operators, BOOLS, ["double"]),)
        in_single = (
            *itertools.product(OFFSETS, ["Sum"], ["false"], ["float"]),
            *zip(OFFSETS, operators[1:], ["true", "true"], ["float", "float"], strict=True),
        )
        of_rows = in_double + in_single * single
        return [
            *(
                f"{name}<InRows<{offset}, {tiered}>, {operator}, {share}, {together}>"
                for offset, operator, tiered, share in of_rows
            ),
            *(
                f"{name}<Tiles, {operator}, {share}, {tiled}>"
                for operator, share in itertools.product(
                    operators, ("double", "float")[: 1 + single]
                )
            ),
        ]

    return {
        "bfs/wide_search.cu": [
            f"wide_search<{offset}, {distance}, {tiered}, {wide}>"
            for offset, distance, tiered in searches
        ],
        "bfs/narrow_search.cu": [
            f"narrow_search<{offset}, {width}, {count}, {local}, {narrow}>"
            for offset, width, count, local in itertools.product(OFFSETS, (0, 4, 8), blocks, BOOLS)
        ],
        "bfs/by_row.cu": [
            *(f"distances_by_row<{distance}>" for distance in DISTANCES),
            *(f"values_by_row<{value}>" for value in ("u8", "u32")),
            *("number_rows", "parents_by_row"),
        ],
        "bfs/slice_search.cu": [f"slice_search<{gpu_slices.THREADS}>"],
        "bfs/slices.cu": [
            *(f"{name}<{offset}>" for name in ("min_hashes", "slice_keys") for offset in OFFSETS),
            *("mark_slices", "write_slices"),
        ],
        "ranks/delegate_search.cu": [
            f"delegate_search<{offset}, {distance}, {tiered}, {wide}>"
            for offset, distance, tiered in searches
        ],
        "ranks/grid_search.cu": [
            f"grid_search<{offset}, {distance}, {tiered}, {wide}>"
            for offset, distance, tiered in searches
        ],
        "rows/grid_rows.cu": [
            f"place_tile<{to}, {kind}>" for to, kind in itertools.product(OFFSETS, OFFSETS)
        ],
        "rows/delegate_rows.cu": [
            *(f"place_targets<{to}, {kind}>" for to, kind in itertools.product(OFFSETS, OFFSETS)),
            *("mark_ghosts", "number_targets", "list_ghosts"),
        ],
        "bfs/derive.cu": [
            name
            for offset in OFFSETS
            for name in (
                f"first_entries<{offset}>",
                f"padded_rows<{offset}, 4>",
                f"padded_rows<{offset}, 8>",
                f"long_rows<{offset}>",
            )
        ],
        "prepare/generate.cu": ["kronecker", "uniform", "grid"],
        "prepare/prepare.cu": ["count_degrees<u32>", "order_keys<u64>", "number_vertices<u32>"],
        "programs/rows.cu": [
            f"{name}<{offset}>"
            for name in ("cut_turns", "list_long_rows", "find_columns", "move_to_columns")
            for offset in OFFSETS
        ]
        + [f"add_weights<{offset}, {kind}>" for offset in OFFSETS for kind in ("u32", "float")],
        "rows/stored_rows.cu": [
            *(
                f"{name}<{to}, {kind}>"
                for name in ("place_entries", "place_reversed")
                for to, kind in itertools.product(OFFSETS, OFFSETS)
            ),
            *(f"key_entries<{offset}>" for offset in OFFSETS),
            "count_targets",
        ],
        "programs/components.cu": [
            *(
                f"{name}<{offset}, {tiered}, {together}>"
                for name in ("components", "plant_share", "join_share")
                for offset, tiered in itertools.product(OFFSETS, BOOLS)
            ),
            *(f"{name}<{together}>" for name in ("tell_forest", "join_told")),
        ],
        "walks/gather.cu": walks("gather_values", single=False),
        "walks/pagerank.cu": walks("pagerank"),
        "walks/shared_walks.cu": [
            *walks("pagerank_shares"),
            *walks("gather_shares"),
            *(f"advance_part<{share}, {together}>" for share in ("double", "float")),
            *(
                f"mark_entries<{offset}, {tiered}, {together}>"
                for offset, tiered in itertools.product(OFFSETS, BOOLS)
            ),
            f"count_roles<{together}>",
            *(f"list_rows<{offset}, {together}>" for offset in OFFSETS),
        ],
        "walks/tiles.cu": [
            f"{name}<{offset}>"
            for name in ("weigh_units", "count_segments", "place_segments")
            for offset in OFFSETS
        ],
        "programs/betweenness.cu": [
            f"betweenness_{how}<{offset}, {tiered}, {wide}, {sources}>"
            for how in ("together", "apart")
            for offset, tiered, wide in itertools.product(OFFSETS, BOOLS, BOOLS)
        ],
        "programs/searches.cu": [
            f"{function}<{offset}, {tiered}, {launch}>"
            for function, launch in (
                ("search_together", together),
                ("search_nearest", together),
                ("search_apart", apart),
            )
            for offset, tiered in itertools.product(OFFSETS, BOOLS)
        ],
        "programs/shortest_paths.cu": [
            "take_apart",
            *(f"queue_marked<{offset}>" for offset in OFFSETS),
            *(
                f"whole_paths<{offset}, u32, {tiered}, {paths}>"
                for offset, tiered in itertools.product(OFFSETS, BOOLS)
            ),
            *(
                f"{name}<{offset}, {weight}, {tiered}, {paths}>"
                for name in ("shortest_paths", "adopt_nearer", "adopt_alike")
                for offset, weight, tiered in itertools.product(OFFSETS, ("u32", "float"), BOOLS)
            ),
        ],
        "programs/shared_paths.cu": [
            f"shared_paths<{offset}, {weight}, {tiered}, {paths}>"
            for offset, weight, tiered in itertools.product(OFFSETS, ("u32", "float"), BOOLS)
        ],
        "pieces/spread.cu": [
            *(f"queue_places<{offset}>" for offset in OFFSETS),
            *(
                f"push_words<{offset}, {tiered}, {operator}>"
                for offset, tiered, operator in itertools.product(OFFSETS, BOOLS, WORDS)
            ),
            *(
                f"pull_words<{offset}, {tiered}, {operator}, {together}>"
                for offset, tiered, operator in itertools.product(OFFSETS, BOOLS, WORDS)
            ),
        ],
        "pieces/across.cu": [
            f"gather_across<{offset}, {tiered}, LeastLeaving, {together}>"
            for offset, tiered in itertools.product(OFFSETS, BOOLS)
        ],
        "pieces/trees.cu": list(gpu_trees.FUNCTIONS),
        "pieces/folding.cu": list(folding.FUNCTIONS),
        "pieces/labels.cu": list(gpu_labelling.FUNCTIONS),
        "pieces/communities.cu": [
            "find_tied",
            *(
                f"join_within<{offset}, {tiered}, {together}>"
                for offset, tiered in itertools.product(OFFSETS, BOOLS)
            ),
            *(
                name
                for offset, tiered in itertools.product(OFFSETS, BOOLS)
                for kinds in gpu_communities.kinds_of(offset, tiered, amounts)
                for name in (
                    f"sum_within<{', '.join(kinds)}, {together}>",
                    f"list_pairs<{', '.join(kinds)}>",
                    *(f"do_round<{', '.join(kinds)}, {joins}, {together}>" for joins in BOOLS),
                )
            ),
        ],
        "pieces/intersect.cu": [
            *(
                f"list_earlier<{offset}, {tiered}, {twice}, {together}>"
                for offset, tiered, twice in itertools.product(OFFSETS, BOOLS, BOOLS)
            ),
            *(f"count_ends<{tiered}>" for tiered in BOOLS),
            *(
                gpu_intersect.count_name(function, np.dtype(offset), kind)
                for function in ("count_short", "count_long")
                for offset in (np.uint32, np.uint64)
                for kind in ("AtVertices<false>", "AtVertices<true>", "AtEdges")
            ),
        ],
        "pieces/truss.cu": [f"remove_edges<{offset}, {together}>" for offset in OFFSETS],
        "pieces/vertices.cu": [
            f"list_others<{kind}>" for kind in sorted({*tracing.TYPES.values()})
        ],
        "pieces/tally.cu": [
            f"{function}<{gpu_tally._of(function, ', '.join(kinds))}>"
            for function in ("tally_few", "tally_some", "tally_many")
            for kinds in itertools.product(OFFSETS, BOOLS, amounts, ["MostCommon"])
        ],
        "ranks/check.cu": [f"check_edges<{offset}>" for offset in OFFSETS],
        "bfs/levels.cu": [
            f"count_levels<{offset}, {distance}>"
            for offset, distance in itertools.product(OFFSETS, DISTANCES)
        ],
        "bfs/check.cu": ["check_edges<u64, u8>", "check_vertices<int>", "count_reached<u8, u64>"],
    }


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    libraries = [path for place in places or () for path in Path(place).rglob("libnvrtc.so.*")]
    assert libraries, "the package nvidia-cuda-nvrtc is among the test requirements"
    return ctypes.CDLL(str(libraries[0]))


def test_all_sources_are_here():
    folder = Path(device.__file__).parents[1] / "cuda"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.cu")} == set(instances(90))


def compile_with(nvrtc, name: str, target: str, functions: list[str], more: str = "") -> None:
    program = ctypes.c_void_p()
    text = (device.source(name) + more).encode()
    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None)
    assert created == 0
    for function in functions:
        assert nvrtc.nvrtcAddNameExpression(program, function.encode()) == 0
    options = [b"-std=c++17", f"--gpu-architecture={target}".encode()]
    array = (ctypes.c_char_p * len(options))(*options)
    failed = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not failed, log.value.decode()
    for function in functions:
        lowered = ctypes.c_char_p()
        error = nvrtc.nvrtcGetLoweredName(program, function.encode(), ctypes.byref(lowered))
        assert error == 0
        assert lowered.value
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


SOURCES = instances(80)


@pytest.mark.parametrize("blocks", [1, 8, 16])
def test_functions_of_searches_are_known_ones(blocks):
    known = {(name, one) for name, some in instances(90).items() for one in some}
    wanted = list(gpu_search.functions_of_searches(blocks))
    assert len(set(wanted)) == len(wanted)
    for name, function in wanted:
        alike = re.sub(rf"(narrow_search<.*), {blocks}, (true|false)", r"\1, 16, \2", function)
        assert (name, alike) in known


LARGE = [name for name in SOURCES if name.endswith("_search.cu")]


@pytest.mark.parametrize("name", mostly_slow(LARGE) + [n for n in SOURCES if n not in LARGE])
def test_a_source_compiles(nvrtc, name):
    """The first instance of each source compiles to PTX: most of the time goes into machine
    code.
    """
    compile_with(nvrtc, name, "compute_90", instances(80)[name][:1])


@pytest.mark.nightly
@pytest.mark.parametrize("name", instances(90))
def test_machine_code_of_a_source(nvrtc, name):
    """Every instance compiles to machine code for the newest architecture, several at a time as
    compiling takes long; for older ones, one instance of each function does.
    """
    work = [("sm_90", [one]) for one in instances(90)[name]]
    for age in (80, 75):
        one_each = {one.partition("<")[0]: one for one in instances(age)[name]}
        work.append((f"sm_{age}", [*one_each.values()]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda arguments: compile_with(nvrtc, name, *arguments), work))


STRUCTURES = [
    ("bfs/wide_search.cu", "Graph<u32>", gpu_search.GRAPH),
    ("bfs/wide_search.cu", "Search<u32, u8>", gpu_search.SEARCH),
    ("bfs/wide_search.cu", "Counters", gpu_search.COUNTERS),
    ("bfs/wide_search.cu", "Control", gpu_search.CONTROL),
    ("bfs/wide_search.cu", "LevelRecord", gpu_search.LEVEL),
    ("bfs/wide_search.cu", "Targets", device_graph.TARGETS),
    ("bfs/narrow_search.cu", "Padded", gpu_search.PADDED),
    ("bfs/slice_search.cu", "Slices", gpu_slices.SLICES),
    ("bfs/slice_search.cu", "Search", gpu_slices.SEARCH),
    ("bfs/slice_search.cu", "Control", gpu_slices.CONTROL),
    ("ranks/delegate_search.cu", "DelegateRank<u64, int>", delegate_structures.RANK),
    ("ranks/delegate_search.cu", "DelegateName", delegate_structures.NAME),
    ("ranks/delegate_search.cu", "Peer", delegate_structures.PEER),
    ("ranks/delegate_search.cu", "Arrival", delegate_structures.ARRIVAL),
    ("ranks/delegate_search.cu", "Noted", delegate_structures.NOTED),
    ("ranks/delegate_search.cu", "Region", delegate_structures.REGION),
    ("ranks/delegate_search.cu", "DelegateControl", delegate_structures.CONTROL),
    ("ranks/delegate_search.cu", "DelegateLevel", delegate_structures.LEVEL),
    ("ranks/grid_search.cu", "GridRank<u64, int>", grid_structures.RANK),
    ("ranks/grid_search.cu", "GridName", grid_structures.NAME),
    ("ranks/grid_search.cu", "Letter", grid_structures.LETTER),
    ("ranks/grid_search.cu", "Origin", structures.ORIGIN),
    ("ranks/grid_search.cu", "GlobalIds", structures.GLOBAL_IDS),
    ("ranks/grid_search.cu", "Segment", grid_structures.SEGMENT),
    ("ranks/grid_search.cu", "GridArrival", grid_structures.ARRIVAL),
    ("ranks/grid_search.cu", "Weights", grid_structures.WEIGHTS),
    ("ranks/grid_search.cu", "GridControl", grid_structures.CONTROL),
    ("ranks/grid_search.cu", "GridLevel", grid_structures.LEVEL),
    ("rows/delegate_rows.cu", "Shard<u64>", made_rows.SHARD),
    ("rows/delegate_rows.cu", "MadeRows<u32>", made_rows.MADE_ROWS),
    ("rows/delegate_rows.cu", "Numbers", delegate_rows.NUMBERS),
    ("rows/grid_rows.cu", "Turns", grid_rows.TURNS),
    ("rows/delegate_rows.cu", "Owner", delegate_rows._OWNER),
    ("rows/delegate_rows.cu", "Owners", delegate_rows._OWNERS),
    ("bfs/check.cu", "Claim<int>", gpu_check.CLAIM),
    ("bfs/check.cu", "Report", gpu_check.REPORT),
    ("ranks/check.cu", "Claim", rank_check.CLAIM),
    ("prepare/prepare.cu", "Placing", gpu_prepare._PLACING),
    ("programs/rows.cu", "Rows<u64>", program_rows.ROWS),
    ("programs/rows.cu", "Cuts", program_rows.CUTS),
    ("rows/stored_rows.cu", "Numbering", stored_rows.NUMBERING),
    ("programs/betweenness.cu", "Tree", gpu_betweenness.TREE),
    ("programs/betweenness.cu", "LeftOut", gpu_betweenness.LEFT_OUT),
    ("programs/shortest_paths.cu", "State", gpu_shortest_paths.STATE),
    ("programs/shortest_paths.cu", "Control", gpu_shortest_paths.CONTROL),
    ("programs/shortest_paths.cu", "Paths", gpu_shortest_paths.PATHS),
    ("programs/shared_paths.cu", "Heard", shared_paths.HEARD),
    ("programs/shared_paths.cu", "Shared", shared_paths.SHARED),
    ("programs/shared_paths.cu", "Arrival", meeting.ARRIVAL),
    ("programs/shared_paths.cu", "Meeting", meeting.MEETING),
    ("programs/searches.cu", "Hops", gpu_searches.HOPS),
    ("programs/searches.cu", "Control", gpu_searches.CONTROL),
    ("programs/searches.cu", "Together", gpu_searches.TOGETHER),
    ("programs/searches.cu", "Ways", gpu_searches.WAYS),
    ("programs/searches.cu", "Apart", gpu_searches.APART_STATE),
    ("programs/searches.cu", "Nearest", gpu_searches.NEAREST),
    ("walks/pagerank.cu", "Control", gpu_pagerank.CONTROL),
    ("walks/pagerank.cu", "Walk<double>", gpu_pagerank.WALK),
    ("walks/gather.cu", "Sum", gpu_gather.SUM),
    ("walks/gather.cu", "InRows<u64, true>", gpu_gather.IN_ROWS),
    ("walks/pagerank.cu", "Tiles", program_tiles.TILES),
    ("walks/tiles.cu", "Group", program_tiles.GROUP),
    ("walks/tiles.cu", "Tiling", program_tiles.TILING),
    ("walks/tiles.cu", "Bands", program_tiles.BANDS),
    ("walks/shared_walks.cu", "Shared<float>", shared_walks.SHARED),
    ("walks/shared_walks.cu", "Dealing", shared_walks.DEALING),
]


@pytest.mark.parametrize(
    ("name", "structure", "kind"), STRUCTURES, ids=lambda value: str(value)[:20]
)
def test_structures_are_the_same_on_both_sides(nvrtc, name, structure, kind):
    facts = [f"sizeof({structure}) == {kind.itemsize}"]
    for field, (_, offset, *_) in kind.fields.items():
        facts.append(f"__builtin_offsetof({structure}, {field}) == {offset}")
    compile_with(nvrtc, name, "sm_90", [], "".join(f'static_assert({fact}, "");' for fact in facts))


def test_constants_are_the_same_on_both_sides(nvrtc):
    wide = {
        "sizeof(Scratch)": gpu_search._SCRATCH,
        "STRIP": gpu_search._STRIP,
        f"NEXT + 1 >= {device_graph.SHORT_ROW}": True,
        "NEXT": device_graph.NEXT,
        "LOOKS": device_graph.LOOKS,
        "(u32)DONE": gpu_search.DONE,
        "(u32)WIDE": gpu_search.WIDE,
        "(u32)NARROW": gpu_search.NARROW,
        "(u32)WIDEN": gpu_search.WIDEN,
        "(u32)MORE": gpu_search.MORE,
    }
    narrow = {"SPILL": gpu_search._SPILL}
    ranks = {
        "(u32)EXCHANGE": rank_search.EXCHANGE,
        "(u32)STOPPED": rank_search.STOPPED,
        "(u32)BEGIN": rank_search.BEGIN,
        "(u32)GO_ON": rank_search.GO_ON,
        "(u32)RECEIVE": rank_search.RECEIVE,
        "(u32)MEET": rank_search.MEET,
        "2 * BUFFER * sizeof(u32) <= sizeof(Scratch)": True,
    }
    grids = {
        "(u32)EXPAND_COLUMNS": grid_mail.EXPAND_COLUMNS,
        "(u32)EXPAND_ROWS": grid_mail.EXPAND_ROWS,
        "(u32)FOLD": grid_mail.FOLD,
        "(u32)PULL": grid_mail.PULL,
        **{f"(u32){kind.name}": kind for kind in grid_mail.Kind},
        "(u32)KINDS": grid_structures.KINDS,
        "PHASES": len(structures.PHASES),
    }
    lengths = zip(program_tiles._LONGEST, program_tiles._WIDTH, strict=True)
    tiled = {"GROUPS": len(program_tiles._LONGEST)}
    for group, (longest, width) in enumerate(lengths):
        tiled |= {f"longest({group})": longest, f"1 << lanes_shift({group})": width}
    sources = {
        "bfs/check.cu": {"LONG_STRIP": device.LONG_STRIP},
        "bfs/wide_search.cu": wide,
        "bfs/narrow_search.cu": narrow,
        "bfs/slice_search.cu": {"SET": gpu_slices.SET, "LAST_LEVEL": gpu_slices.LAST_LEVEL},
        "programs/shortest_paths.cu": {"PART": gpu_shortest_paths.PART},
        "programs/shared_paths.cu": {"SAID": meeting.SAID},
        "walks/tiles.cu": tiled,
        "programs/searches.cu": {
            "SEARCHES": gpu_searches.WIDTH,
            "(u32)FOUND": gpu_searches.FOUND,
            "(u32)SELDOM_MEET": gpu_searches.SELDOM_MEET,
            "(u32)DEEPER": gpu_searches.DEEPER,
        },
        "bfs/slices.cu": {"SET": gpu_slices.SET, "SLICES": gpu_slices.VIRTUAL},
        "ranks/delegate_search.cu": ranks,
        "ranks/grid_search.cu": grids,
    }
    for name, constants in sources.items():
        facts = "".join(
            f'static_assert({what} == {int(it)}, "");' for what, it in constants.items()
        )
        compile_with(nvrtc, name, "sm_90", [], facts)
    buffers = f"{gpu_search.NARROW_THREADS} / 32 * BUFFER * sizeof(u32)"
    room = f"sizeof(Cohort<{device.MOST_BLOCKS}>) <= {gpu_search._COHORT} && {buffers} <= 8 * NEAR"
    compile_with(nvrtc, "bfs/narrow_search.cu", "sm_90", [], f'static_assert({room}, "");')

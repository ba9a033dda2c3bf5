"""A projection, not a measurement: searches of Kronecker graphs, scale 27 a GPU, and iterations of
PageRank, scale 25 a GPU, by many GPUs.

python benchmarks/scaling_model.py

Of searches the cost model is that of Pan, Pearce, Owens (Scalable Breadth-First Search on a GPU
Cluster, section V-B), fed with what was measured on two H200s; of PageRank, what is told, and what
was measured on one to four H200s (docs/speed/several-gpus.md says where each figure comes from).
Prints the tables of docs/speed/several-gpus.md.
"""

from __future__ import annotations

from math import log2

VERTICES = 68.2e6  # a GPU, that have an edge: kron25's 17.06 million, four times
ENTRIES = 4.2e9  # a GPU, edges in both directions
ROWS = 2**31  # a GPU, of the input
LOCAL_SECONDS = 1.8e-3  # kron28 on two H200s, but for what was sent and nn
NN_RATE = 35e9  # edges along nn followed a second
STEPS = 8
MASKS = 3  # supersteps whose delegates travel as a bitmap
PULLS = 2  # of these, in which a rank within a host tells of its own delegates alone
NVLINK = 300e9  # bytes a second and GPU
NETWORK = 50e9  # assumed
LATENCY = 10e-6  # of an exchange over the network, assumed
# An iteration of kron25 on one H200, kron26 on two, kron27 on four, if nobody is told.
WALK_SECONDS = {1: 6.06e-3, 2: 7.86e-3, 4: 9.30e-3}
WALK_SEEN = 0.5  # of what is told; the rest is on its way while rows are gathered
# Of a rank's vertices, by another one of so many: of kron24 on two and four; of eight as degrees
# let one expect, the mean of 1 - (7 / 8)^degree (which gives 0.84 and 0.68 of the others).
READ = {2: 0.83, 4: 0.67, 8: 0.53}
WALK_VERTICES = 16.4e6  # a GPU, that have an edge
# Threshold: delegates by vertex, share of nn entries. Of kron25, measured.
THRESHOLDS = {
    355: (0.0265, 0.0979),
    64: (0.106, 0.0132),
    32: (0.185, 0.0047),
    16: (0.237, 0.0023),
    4: (0.488, 0.0002),
}


def seconds(gpus: int, threshold: int) -> tuple[float, float, float]:
    """Of the visits, of delegates on their way, of normal vertices on theirs."""
    delegate_share, nn_share = THRESHOLDS[threshold]
    delegates = delegate_share * VERTICES * gpus
    nn = nn_share * ENTRIES  # a GPU
    visits = LOCAL_SECONDS + nn / NN_RATE
    if gpus <= 8:  # each reads the masks of all others
        read = (gpus - 1) * delegates / 8 * (MASKS - PULLS + PULLS / gpus)
        return visits, read / NVLINK, 4 * nn / NVLINK
    masks = delegates * log2(gpus) / 4 * MASKS / NETWORK
    return visits + STEPS * LATENCY * log2(gpus), masks, 4 * nn / NETWORK


def walk_seconds(gpus: int) -> tuple[float, float]:
    """Of an iteration: what a GPU does by itself, where each doubling of the graph adds what the
    last one that was measured did; what is told.
    """
    more = WALK_SECONDS[4] - WALK_SECONDS[2]
    alone = WALK_SECONDS.get(gpus, WALK_SECONDS[4] + more * log2(gpus / 4))
    return alone, _told_seconds(gpus)


def _told_seconds(gpus: int) -> float:
    """Within a host its own shares to each of the others that read them. Over a network, a sum from
    each of the others for each vertex of its part, and its part's shares to each.
    """
    each = 8 * WALK_VERTICES * (gpus - 1)
    return WALK_SEEN * each * READ[gpus] / NVLINK if gpus in READ else 2 * each / NETWORK


def main() -> None:
    print("| GPUs | scale | threshold | visits, ms | delegates, ms | nn, ms | search, ms | GTEPS |")
    print("|---|---|---|---|---|---|---|---|")
    for power in range(3, 13):
        gpus = 2**power
        threshold = min(THRESHOLDS, key=lambda some: sum(seconds(gpus, some)))
        parts = seconds(gpus, threshold)
        told = " | ".join(f"{1e3 * part:.1f}" for part in (*parts, sum(parts)))
        rate = ROWS * gpus / sum(parts) / 1e9
        print(f"| {gpus:,} | {27 + power} | {threshold} | {told} | {rate:,.0f} |")
    print("\n| GPUs | scale | by itself, ms | told, ms | iteration, ms | efficiency |")
    print("|---|---|---|---|---|---|")
    for power in range(1, 8):
        parts = walk_seconds(2**power)
        told = " | ".join(f"{1e3 * part:.1f}" for part in (*parts, sum(parts)))
        print(f"| {2**power} | {25 + power} | {told} | {WALK_SECONDS[1] / sum(parts):.2f} |")


if __name__ == "__main__":
    main()

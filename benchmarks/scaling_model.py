"""A projection, not a measurement: searches of Kronecker graphs, scale 27 a GPU, by many GPUs.

python benchmarks/scaling_model.py

The cost model is that of Pan, Pearce, Owens (Scalable Breadth-First Search on a GPU Cluster,
section V-B), fed with what was measured on two H200s (docs/scaling.md says where each figure comes
from). Prints the table of docs/scaling.md.
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


if __name__ == "__main__":
    main()

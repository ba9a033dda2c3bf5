"""One product of a graph with words of 64 searches, all of it: by rows, by slices of eight columns a row,
and by bit products of tiles (mma m8n8k128, and, popc), where tiles of 8 rows x 128 columns have entries.
Each is checked against rows. Run in benchmarks/."""
import sys, time
sys.path.insert(0, "benchmarks")
from pathlib import Path
import numpy as np, cupy as cp, gpu, real

from delegraph.kernels.gpu.device import open_device
SRC = r'''
typedef unsigned long long u64; typedef unsigned u32; typedef unsigned char u8;
extern "C" __global__ void rows(const u32* row, const u32* col, u64 m, const u64* F, u64* out) {
  u64 e = (blockIdx.x * (u64)blockDim.x + threadIdx.x) * 8; if (e >= m) return;
  u64 end = min(e + 8, m), word = 0; u32 at = row[e];
  for (; e < end; e++) { u32 r = row[e]; if (r != at) { if (word & ~out[at]) atomicOr(out + at, word); word = 0; at = r; } word |= F[col[e]]; }
  if (word & ~out[at]) atomicOr(out + at, word);
}
extern "C" __global__ void slices(const u32* row, const u32* set, const u8* mask, u64 m, const u64* F, u64* out) {
  u64 e = (blockIdx.x * (u64)blockDim.x + threadIdx.x) * 8; if (e >= m) return;
  u64 end = min(e + 8, m), word = 0; u32 at = row[e];
  for (; e < end; e++) { u32 r = row[e]; if (r != at) { if (word & ~out[at]) atomicOr(out + at, word); word = 0; at = r; }
    u32 bits = mask[e]; const u64* f = F + 8ull * set[e];
    while (bits) { word |= f[__ffs(bits) - 1]; bits &= bits - 1; } }
  if (word & ~out[at]) atomicOr(out + at, word);
}
// A tile: 8 rows of 128 bits, 32 words; lane's word is [row lane/4][word lane%4]. FT: [block of 128][source 64][4 words].
extern "C" __global__ void tiles(const u32* rowblock, const u32* colblock, const u32* bits, u64 m, const u32* FT, u32* out) {
  u64 t = (blockIdx.x * (u64)blockDim.x + threadIdx.x) >> 5; u32 lane = threadIdx.x & 31; if (t >= m) return;
  u32 a = bits[t * 32 + lane];
  const u32* f = FT + colblock[t] * 256ull;
  u32 lo = 0, hi = 0; // of rows lane/4: sources 2*(lane%4), +1 of each group of 8
  for (int g = 0; g < 8; g++) {
    u32 b = f[(g * 8 + lane / 4) * 4 + lane % 4]; int c0 = 0, c1 = 0;
    asm("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1}, {%2}, {%3}, {%4,%5};" : "=r"(c0), "=r"(c1) : "r"(a), "r"(b), "r"(0), "r"(0));
    u32 two = (c0 > 0) | (c1 > 0) << 1; u32 at = g * 8 + 2 * (lane % 4);
    if (at < 32) lo |= two << at; else hi |= two << (at - 32);
  }
  for (int d = 1; d < 4; d *= 2) { lo |= __shfl_xor_sync(~0u, lo, d); hi |= __shfl_xor_sync(~0u, hi, d); }
  u64 v = rowblock[t] * 8ull + lane / 4;
  if (lane % 4 == 0 && (lo & ~out[2 * v])) atomicOr(out + 2 * v, lo);
  if (lane % 4 == 1 && (hi & ~out[2 * v + 1])) atomicOr(out + 2 * v + 1, hi);
}
'''
mod = cp.RawModule(code=SRC)
K = {n: mod.get_function(n) for n in ("rows", "slices", "tiles")}
def timed(call):
    call(); best = []
    for _ in range(7):
        a, b = cp.cuda.Event(), cp.cuda.Event(); a.record(); call(); b.record(); b.synchronize()
        best.append(cp.cuda.get_elapsed_time(a, b))
    return sorted(best)[3]
device = open_device()
graphs = real.real_graphs(Path(sys.argv[1])) if len(sys.argv) > 1 else {}
names = ["kron22", "urand22", *sorted(graphs)]
print("graph entries slices/entry entries/tile rows_ms slices_ms tiles_ms", flush=True)
with device.use():
    for name in names:
        s = gpu.load(device, name, graphs)
        rows = s.prepared; off, col = rows.offsets, rows.targets
        n, m = len(off) - 1, len(col); N = -(-n // 128) * 128
        row = cp.searchsorted(off, cp.arange(m, dtype=off.dtype), side="right").astype(cp.uint32) - cp.uint32(1)
        row = row.astype(cp.uint32)
        rng = np.random.default_rng(1)
        F = cp.zeros(N, cp.uint64); F[:n] = cp.asarray(rng.integers(0, 2**63, n, dtype=np.uint64) & rng.integers(0, 2**63, n, dtype=np.uint64))
        outs = {}
        out = cp.zeros(N, cp.uint64)
        def by_rows():
            out.fill(0); K["rows"]((-(-m // 2048),), (256,), (row, col, np.uint64(m), F, out))
        t_rows = timed(by_rows); want = out.copy()
        def grouped(key, bit):
            order = cp.argsort(key); k = key[order]; first = cp.concatenate([cp.ones(1, bool), k[1:] != k[:-1]])
            at = cp.flatnonzero(first); sums = cp.concatenate([cp.cumsum(bit[order].astype(cp.int64)), cp.zeros(0, cp.int64)])
            ends = cp.concatenate([at[1:] - 1, cp.asarray([len(k) - 1])]); total = sums[ends]
            total = total - cp.concatenate([cp.zeros(1, cp.int64), total[:-1]]); return k[at], total
        key = row.astype(cp.uint64) << cp.uint64(32) | (col >> 3).astype(cp.uint64)
        k, mask = grouped(key, (1 << (col & 7)).astype(cp.uint32)); del key
        ms = len(k); srow, sset, smask = (k >> cp.uint64(32)).astype(cp.uint32), k.astype(cp.uint32), mask.astype(cp.uint8); del k, mask
        def by_slices():
            out.fill(0); K["slices"]((-(-ms // 2048),), (256,), (srow, sset, smask, np.uint64(ms), F, out))
        t_slices = timed(by_slices); assert (out == want).all(), name
        del srow, sset, smask
        # tiles: words of 32 columns, then tiles
        tile = (row >> 3).astype(cp.uint64) << cp.uint64(32) | (col >> 7).astype(cp.uint64)
        t = cp.unique(tile); mt = len(t); t_tiles = float("nan")
        if mt * 128 < 40 << 30:
            at = cp.searchsorted(t, tile).astype(cp.uint64); del tile
            bits = cp.zeros(mt * 32, cp.uint32)
            word = at * 32 + ((row & 7) * 4 + (col >> 5 & 3)).astype(cp.uint64); del at
            put = cp.ElementwiseKernel("uint64 w, uint32 c, raw uint32 b", "", "atomicOr((unsigned*)&b[w], 1u << (c & 31))"); put(word, col, bits); del word
            tr, tc = (t >> cp.uint64(32)).astype(cp.uint32), t.astype(cp.uint32)
            h = F.get().reshape(-1, 128); b = np.unpackbits(h.view(np.uint8).reshape(len(h), 128, 8), axis=2, bitorder="little")
            FT = cp.asarray(np.packbits(b.transpose(0, 2, 1), axis=2, bitorder="little").copy().view(np.uint32).reshape(-1)); del b
            def by_tiles():
                out.fill(0); K["tiles"]((-(-mt // 8),), (256,), (tr, tc, bits, np.uint64(mt), FT, out.view(cp.uint32)))
            t_tiles = timed(by_tiles); assert (out == want).all(), name
            del bits, FT, tr, tc
        print(f"{name} {m} {ms / m:.2f} {m / mt:.1f} {t_rows:.3f} {t_slices:.3f} {t_tiles:.3f}", flush=True)
        del s, rows, off, col, row, F, out, want, t; cp.get_default_memory_pool().free_all_blocks()

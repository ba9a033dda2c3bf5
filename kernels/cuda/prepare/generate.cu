// Rows of synthetic graphs, those of kernels/prepare/generate.py bit for bit: a row is a function of
// its number and the seed alone, by counter-based random words (Philox4x32-10; Salmon et al., SC 2011)
// that are compared with integer thresholds.
#include "base/work.cuh"

struct Words {
  u32 at[4];
};

__device__ inline Words philox(u64 counter, u32 block, u64 seed) {
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = block, c3 = 0;
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    u64 p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (u32)p1;
    c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (u32)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// first, rows: which rows. add, multiply: of the permutation's rounds. a, ab, abc: words below
// them choose quadrant A, A or B, all but D.
struct Kronecker {
  u64 first, rows, seed;
  u64 add[4], multiply[4];
  u32 scale, a, ab, abc;
};

__device__ inline u32 permute(u64 vertex, const Kronecker &graph) {
  const u64 mask = (1ull << graph.scale) - 1;
  const u32 fold = (graph.scale + 1) / 2;
  for (int round = 0; round < 4; ++round) {
    vertex = ((vertex + graph.add[round]) * graph.multiply[round]) & mask;
    vertex ^= vertex >> fold;
  }
  return (u32)vertex;
}

__global__ void kronecker(Kronecker graph, u32 *src, u32 *dst) {
  FOR_ITEMS(i, graph.rows) {
    u64 u = 0, v = 0;
    for (u32 level = 0; level < graph.scale; level += 4) {
      const Words words = philox(graph.first + i, level / 4, graph.seed);
#pragma unroll
      for (u32 k = 0; k < 4; ++k) {
        if (level + k >= graph.scale) break;
        // Quadrants by falling probability: A (0,0), B (0,1), C (1,0), D (1,1).
        const u32 word = words.at[k];
        const u32 past_a = word >= graph.a, past_b = word >= graph.ab, past_c = word >= graph.abc;
        u = u << 1 | past_b;
        v = v << 1 | (past_a ^ past_b ^ past_c);
      }
    }
    src[i] = permute(u, graph);
    dst[i] = permute(v, graph);
  }
}

// Both ends uniform in [0, 2^scale), a scale of 32 at most.
__global__ void uniform(u64 first, u64 rows, u64 seed, u32 scale, u32 *src, u32 *dst) {
  const u32 mask = (u32)((1ull << scale) - 1);
  FOR_ITEMS(i, rows) {
    const Words words = philox(first + i, 0, seed);
    src[i] = words.at[0] & mask;
    dst[i] = words.at[2] & mask;
  }
}

// height, width: cells. keep_below: joins are kept whose word is below (0 to 2^32).
struct Grid {
  u64 first, candidates, seed, height, width, keep_below;
};

// Candidate k joins cell k / 2 to its right neighbour or, k odd, to the one below; src and dst are
// NONE where it is left out.
__global__ void grid(Grid graph, u32 *src, u32 *dst) {
  FOR_ITEMS(i, graph.candidates) {
    const u64 k = graph.first + i, cell = k >> 1;
    const bool down = k & 1;
    const bool inside =
        down ? cell < (graph.height - 1) * graph.width : cell % graph.width != graph.width - 1;
    const bool kept = inside && philox(k, 0, graph.seed).at[0] < graph.keep_below;
    src[i] = kept ? (u32)cell : NONE;
    dst[i] = kept ? (u32)(cell + (down ? graph.width : 1)) : NONE;
  }
}

// Searches from up to 64 vertices: pipeline/algorithms/searches.py says what is found, and when it pays
// (Then et al.: The More the Merrier: Efficient Multi-Source Graph Traversal, VLDB 2014). Together they
// have a bit each of a word of every vertex, and are one launch of the whole grid. Apart, each is a block's.
#include "programs/queue.cuh"
#include "programs/rows.cuh"

#define SEARCHES 64
#define AT_ONCE 4  // entries of a lane whose loads are under way
#define DIGITS 6   // of BitCounts
#define A_LANE 16  // entries of a row that a lane looks at, if it comes to that
#define SPARSE 4   // of so many vertices one was found by the last level: most have nothing to tell
#define OPEN 4     // of so many entries one is of a vertex that not all searches have reached

// How many words have each bit: 64 sums at once, a word of each of their digits. Of a thread; its warp goes
// together.
struct BitCounts {
  u64 digits[DIGITS] = {};
  u32 added = 0;

  __device__ void add(u64 word, u32 *counts) {
#pragma unroll
    for (u32 digit = 0; digit < DIGITS; digit++) {
      const u64 carry = digits[digit] & word;
      digits[digit] ^= word, word = carry;
    }
    if (++added == (1 << DIGITS) - 1) give(counts);
  }

  // Add all to `counts`, a number for each bit.
  __device__ void give(u32 *counts) {
    u64 any = 0, sums[DIGITS + 5];
    added = 0;
#pragma unroll
    for (u32 digit = 0; digit < DIGITS + 5; digit++) {
      sums[digit] = digit < DIGITS ? digits[digit] : 0, any |= sums[digit];
      if (digit < DIGITS) digits[digit] = 0;
    }
    if (!__any_sync(ALL, any != 0)) return;
#pragma unroll
    for (u32 step = 0; step < 5; step++) {
      u64 carry = 0;
#pragma unroll
      for (u32 digit = 0; digit <= DIGITS + step; digit++) {
        const u64 other = __shfl_xor_sync(ALL, sums[digit], 1 << step), half = sums[digit] ^ other;
        const u64 both = (sums[digit] & other) | (half & carry);
        sums[digit] = half ^ carry, carry = both;
      }
    }
    for (u32 bit = lane_id(); bit < SEARCHES; bit += 32) {
      u32 sum = 0;
#pragma unroll
      for (u32 digit = 0; digit < DIGITS + 5; digit++) sum |= (u32)(sums[digit] >> bit & 1) << digit;
      if (sum) atomicAdd(counts + bit, sum);
    }
  }
};

// Of a search: vertices reached, itself among them, the sum of their distances, that of 1 over the distances of
// the others, and the greatest one.
struct Hops {
  u64 reached, total;
  double harmonic;
  u32 farthest, unused;

  // Add vertices that a level has found. Levels come in their order.
  __device__ void add(u64 found, u32 level) {
    reached += found, total += level * found, harmonic += (double)found / level, farthest = level;
  }
};

enum Outcome : u32 { FOUND, SELDOM_MEET, DEEPER };

// looked: entries. leaving: of the vertices that a level has found; open: of those that not all searches have
// reached, as far as they were asked, or of those that are not open any more. found: vertices; queued, listed:
// items of it, and of what tells it.
// counts: by search. listed_open: items. hops: by search.
struct Control {
  u64 arrived, looked;
  u64 leaving[3], open[3], found[3];
  u32 queued[3], listed[3];
  u32 counts[3][SEARCHES];
  u32 levels, outcome, listed_open, unused;
  Hops hops[SEARCHES];
};

// seen, words: by vertex, a bit by search: what has reached it, and what did on a level; two of these in
// turn, and empty at first. any: a bit by vertex, whether the last level has found it. bits: of distances
// of so many digits, by vertex, digit by digit; or none. open: vertices that not all have reached.
struct Together {
  u64 *seen;
  u64 *words[2];
  Item *queue[2];
  Item *open;
  u32 *any;
  u64 *bits;
  Control *control;
  u32 digits, unused;
};

// Some vertices, of which each is once the first part of an item; or all that there are, if `items` is null.
struct Some {
  const Item *items;
  u32 count;
};

// What a vertex has been seen by.
struct Seen {
  u32 vertex;
  u64 by;
};

template <class Offset, bool TIERED>
struct Level {
  const Rows<Offset> &rows;
  const Together &of;
  const Grid grid;
  u64 active;        // bits of searches that go on
  u32 number, slot;  // slot: of counters, one of three
  u64 *now, *next;   // words of the last level, and of this one

  __device__ u32 degree(u32 vertex) const { return (u32)entries_of(rows, vertex).count(); }
  __device__ u32 items(u32 vertex) const { return items_found(rows.offsets, vertex); }

  // Call `visit(vertex)` with each, by all lanes of a warp together: NONE where there is none for a lane.
  template <class Visit>
  __device__ void each(Some some, Visit visit) const {
    for (u64 base = grid.crew().warp * 32ull; base < some.count; base += grid.crew().warps * 32ull) {
      const u32 i = (u32)base + lane_id();
      if (!some.items) {
        visit(i < some.count ? i : NONE);
      } else {
        const Item item = i < some.count ? some.items[i] : Item{NONE, 0};
        visit(item.part == 0 ? item.vertex : NONE);
      }
    }
  }

  // Queue those of some vertices that `who` has found on the last level.
  __device__ void list(Some some, u64 who, Item *queue, u32 *queued) {
    each(some, [&](u32 vertex) {
      const bool any = vertex != NONE && (now[vertex] & who);
      push_items(queue, queued, vertex, any ? items(vertex) : 0);
    });
  }

  // List vertices that a search has not reached.
  __device__ void list_open() {
    each({nullptr, rows.rows}, [&](u32 vertex) {
      const bool any = vertex != NONE && (active & ~of.seen[vertex]);
      push_items(of.open, &of.control->listed_open, vertex, any ? items(vertex) : 0);
    });
  }

  // Mark what `who` has found on the last level.
  __device__ void mark(u64 who) {
    each({nullptr, rows.rows}, [&](u32 vertex) {
      const u32 found = __ballot_sync(ALL, vertex != NONE && (now[vertex] & who));
      if (lane_id() == 0) of.any[vertex / 32] = found;
    });
  }

  // Some items tell their neighbours what `who` has found; queue: receives those that hear anything new, unless
  // it is null.
  __device__ void tell(Some some, u64 who, Item *queue) {
    u32 edges = 0;
    auto own = [&](u32 vertex) { return now[vertex] & who; };
    auto look = [&](u64 edge) -> Seen {
      const u32 vertex = entry<TIERED>(rows.targets, edge);
      return {vertex, of.seen[vertex]};
    };
    auto hear = [&](u64 mine, Seen seen, bool any) {
      const u64 wanted = any ? mine & ~seen.by : 0;
      u32 found = 0;
      edges += any;
      // (Hubs are told of most bits more than once.)
      if (wanted && (wanted & ~__ldcg(next + seen.vertex)) && !atomicOr(next + seen.vertex, wanted))
        found = items(seen.vertex);
      if (queue) push_items(queue, &of.control->queued[slot], seen.vertex, found);
    };
    follow(rows.offsets, some.items, some.count, grid.crew(), own, look, hear);
    note(edges);
  }

  // Vertices ask their neighbours for what `who` has found: those that are open, or all. sparse: few neighbours
  // have anything to tell, and these are marked.
  __device__ void ask(Some some, u64 who, bool sparse) {
    u32 edges = 0;
    auto look = [&](u32 row, Entries entries, bool part, u32 lane, u32 width) {
      u64 wanted = row == NONE ? 0 : who & ~of.seen[row], came = 0;
      if (part && wanted) wanted &= ~__ldcg(next + row);  // other parts have heard of some
      for (u64 e = entries.begin;; e += AT_ONCE * width) {
        const bool more = e < entries.end && (wanted & ~came);
        if (!__any_sync(ALL, more)) break;
        u32 target[AT_ONCE];
        u64 word[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; k++) {
          const u64 own = e + lane + k * width;
          target[k] = more && own < entries.end ? entry<TIERED>(rows.targets, own) : NONE;
          edges += target[k] != NONE;
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; k++)
          if (sparse && target[k] != NONE && !has_bit(of.any, target[k])) target[k] = NONE;
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; k++) word[k] = target[k] != NONE ? now[target[k]] : 0;
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; k++) came |= word[k];
        for (u32 step = width / 2; step; step /= 2) came |= __shfl_xor_sync(ALL, came, step);
      }
      came &= wanted;
      if (lane || !came) return;
      if (part)
        atomicOr(next + row, came);
      else
        next[row] |= came;
    };
    if (some.items)
      visit_items(rows, some.items, some.count, grid.crew(),
                  [&](u32, u32 row, Entries entries, u32 lane, u32 width) {
                    look(row, entries, row != NONE && items(row) > 1, lane, width);
                  }, A_LANE);
    else
      visit_rows(rows, grid.crew(),
                 [&](u32 row, Entries whole, Entries entries, u32 lane, u32 width) {
                   look(row, entries, entries.count() < whole.count(), lane, width);
                 }, A_LANE);
    note(edges);
  }

  // Take over what this level has found, all of it among `found_in`; and empty the words of the last one, all of
  // it among `before`. asked: whether `found_in` is all that was open, and entries of what still is are counted;
  // else those of what is no more.
  __device__ void settle(Some found_in, Some before, bool asked) {
    each(before, [&](u32 vertex) {
      if (vertex != NONE) now[vertex] = 0;
    });
    __shared__ u32 sums[SEARCHES];
    if (threadIdx.x < SEARCHES) sums[threadIdx.x] = 0;
    __syncthreads();
    BitCounts counts;
    u32 found = 0, leaving = 0, open = 0;
    each(found_in, [&](u32 vertex) {
      const u64 word = vertex == NONE ? 0 : next[vertex];
      const u64 seen = vertex != NONE && (word || asked) ? of.seen[vertex] | word : 0;
      if (vertex != NONE && (word || asked) && asked == ((active & ~seen) != 0)) open += degree(vertex);
      if (word) {
        of.seen[vertex] = seen;
        if (of.bits)
          for (u32 digit = 0, rest = number; rest; digit++, rest >>= 1)
            if (rest & 1) of.bits[(u64)digit * rows.rows + vertex] |= word;
        found++, leaving += degree(vertex);
      }
      counts.add(word, sums);
    });
    counts.give(sums);
    __syncthreads();
    if (threadIdx.x < SEARCHES && sums[threadIdx.x])
      atomicAdd(&of.control->counts[slot][threadIdx.x], sums[threadIdx.x]);
    u64 *const to[3] = {&of.control->found[slot], &of.control->leaving[slot], &of.control->open[slot]};
    add_sums({found, leaving, open}, to);
  }

  // Which searches have found anything, which of them less than one in `rare` vertices, and how many bits that
  // makes in all. Called by whole blocks.
  struct Searching {
    u64 active, slow, bits;
  };

  __device__ Searching searching(u32 rare) {
    __shared__ Searching sums;
    if (threadIdx.x == 0) sums = {0, 0, 0};
    __syncthreads();
    if (threadIdx.x < SEARCHES) {
      const u32 count = __ldcg(&of.control->counts[slot][threadIdx.x]);
      const u64 bit = 1ull << threadIdx.x;
      if (count) atomicOr(&sums.active, bit), atomicAdd(&sums.bits, (u64)count);
      if (count && (u64)count * rare < rows.rows) atomicOr(&sums.slow, bit);
      if (blockIdx.x == 0 && count) of.control->hops[threadIdx.x].add(count, number);
    }
    __syncthreads();
    const Searching found = sums;
    __syncthreads();  // before they are written again
    return found;
  }

  // Called by whole blocks.
  __device__ void note(u32 edges) {
    u64 *const to[3] = {&of.control->looked, &of.control->looked, &of.control->looked};
    add_sums({edges, 0, 0}, to);
  }
};

// How searches go. most: levels. twice: whether every edge stands in the rows of both its ends. asked: entries
// that vertices look at, stopping early, in the time of one that is told of. rare: a search that has found less
// than one in so many vertices tells their neighbours, while these ask for what others have found, and stop
// early. judged: levels after which words have to have so many bits that this `pays`.
struct Ways {
  u32 most, twice, asked, rare, judged, pays;
};

// sources: `count`, each another one.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    search_together(const __grid_constant__ Rows<Offset> rows, const __grid_constant__ Together of,
                    const u32 *sources, u32 count, const __grid_constant__ Ways ways) {
  Control &control = *of.control;
  const u64 every = count < SEARCHES ? (1ull << count) - 1 : ~0ull;
  const Some all = {nullptr, rows.rows};
  Level<Offset, TIERED> level{rows, of, {&control.arrived}, every};
  if (blockIdx.x == 0 && threadIdx.x < SEARCHES) {
    const bool any = threadIdx.x < count;
    const u32 source = any ? sources[threadIdx.x] : NONE;
    push_items(of.queue[0], &control.queued[0], source, any ? level.items(source) : 0);
    if (any) {
      of.seen[source] = of.words[0][source] = 1ull << threadIdx.x;
      atomicAdd(&control.leaving[0], (u64)level.degree(source));
      control.hops[threadIdx.x] = {1, 0, 0, 0};
    }
  }
  level.grid.meet();
  const u64 entries = rows.offsets[rows.rows];
  u64 left = entries, found = 0, bits = 0, slow = every;
  u32 queue = 0, last = 0, outcome = FOUND;
  Some before = {of.queue[0], __ldcg(&control.queued[0])}, open = all;  // where the last level is, and what is open
  bool listed = true;  // whether `before` has nothing else
  while (last < ways.most) {
    level.number = last + 1, level.slot = level.number % 3;
    level.now = of.words[last & 1], level.next = of.words[level.number & 1];
    const u32 past = last % 3, after = (last + 2) % 3;
    if (level.grid.leads()) {
      control.leaving[after] = control.open[after] = control.found[after] = 0;
      control.queued[after] = control.listed[after] = 0;
    }
    if (blockIdx.x == 0 && threadIdx.x < SEARCHES) control.counts[after][threadIdx.x] = 0;
    u32 *const listing = &control.listed[past];
    Some now;
    if (!ways.twice || __ldcg(&control.leaving[past]) * ways.asked < left) {
      Some telling = before;
      if (!listed) {
        level.list(before, level.active, of.queue[queue], listing), level.grid.meet();
        telling = {of.queue[queue], __ldcg(listing)};
      }
      level.tell(telling, level.active, of.queue[1 - queue]);
      level.grid.meet();
      now = {of.queue[1 - queue], __ldcg(&control.queued[level.slot])};
      queue = 1 - queue, listed = true;
    } else {
      const u64 asking = level.active & ~slow ? level.active & ~slow : level.active;
      const u64 telling = level.active & ~asking;
      const bool opens = !open.items && left * OPEN < entries;
      const bool scattered = last == 0 || __ldcg(&control.found[past]) * SPARSE < rows.rows;
      const bool sparse = scattered && !open.items && !opens;
      if (telling) level.list(before, telling, of.queue[1 - queue], listing);
      if (opens) level.list_open();
      if (sparse) level.mark(asking);
      if (telling || opens || sparse) level.grid.meet();
      if (opens) open = {of.open, __ldcg(&control.listed_open)};
      if (telling) level.tell({of.queue[1 - queue], __ldcg(listing)}, telling, nullptr), level.grid.meet();
      level.ask(open, asking, sparse);
      level.grid.meet();
      now = open, listed = false;
    }
    level.settle(now, before, !listed);
    level.grid.meet();
    before = now;
    left = listed ? left - __ldcg(&control.open[level.slot]) : __ldcg(&control.open[level.slot]);
    found += __ldcg(&control.found[level.slot]);
    const auto counted = level.searching(ways.rare);
    level.active = counted.active, slow = counted.slow, bits += counted.bits;
    if (!level.active) break;
    last = level.number;
    if (last >= ways.judged && bits < ways.pays * found) {
      outcome = SELDOM_MEET;
      break;
    }
    if (of.bits && (last + 1) >> of.digits) {
      outcome = DEEPER;
      break;
    }
  }
  if (level.grid.leads()) control.levels = last, control.outcome = outcome;
}

// What blocks have, each its own part. distance: NONE where a search has not been. items: room for those
// of all vertices. hops: receives them.
struct Apart {
  u32 *distance;
  Item *items;
  Hops *hops;
  u64 *looked;
  u64 room;
};

// sources: `count`, no more than there are blocks. most: levels. keep: whether distances are wanted; else
// they are left as they were before.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    search_apart(const __grid_constant__ Rows<Offset> rows, const __grid_constant__ Apart of,
                 const u32 *sources, u32 count, u32 most, u32 keep) {
  if (blockIdx.x >= count) return;
  __shared__ u32 queued;
  __shared__ u64 reached, looked;  // reached: by the last level
  __shared__ Hops hops;            // of the thread that leads
  const Alone block;
  u32 *const distance = of.distance + (u64)blockIdx.x * rows.rows;
  Item *const items = of.items + blockIdx.x * of.room;
  const u32 source = sources[blockIdx.x];
  auto items_for = [&](u32 vertex) { return items_found(rows.offsets, vertex); };
  const u32 begun = items_for(source);
  if (block.leads()) queued = begun, reached = looked = 0, hops = {1, 0, 0, 0}, distance[source] = 0;
  for (u32 part = block.thread(); part < begun; part += block.threads()) items[part] = {source, part};
  block.meet();
  u32 level = 0, last = begun;
  u64 edges = 0;
  for (u32 first = 0; first < last && level < most;) {
    auto own = [](u32) { return 0u; };
    auto look = [&](u64 edge) -> uint2 {
      const u32 vertex = entry<TIERED>(rows.targets, edge);
      return {vertex, distance[vertex]};
    };
    u64 found = 0;
    follow(rows.offsets, items + first, last - first, block.crew(), own, look,
           [&](u32, uint2 seen, bool any) {
             edges += any;
             const bool wanted = any && seen.y == NONE &&
                                 atomicCAS(distance + seen.x, NONE, level + 1) == NONE;
             found += wanted;
             push_items(items, &queued, seen.x, wanted ? items_for(seen.x) : 0);
           });
    if (found) atomicAdd(&reached, found);
    block.meet();
    first = last, last = queued;
    level += last > first;
    if (block.leads() && last > first) hops.add(reached, level), reached = 0;
    __syncthreads();  // before more is queued
  }
  atomicAdd(&looked, edges);
  if (!keep)
    for (u32 i = block.thread(); i < last; i += block.threads()) distance[items[i].vertex] = NONE;
  __syncthreads();
  if (block.leads()) of.hops[blockIdx.x] = hops, atomicAdd(of.looked, looked);
}

// distance: NONE where no search has been. nearest: which of them was there first, the least of several;
// NONE, too. items: of the levels, one after the other.
struct Nearest {
  u32 *distance, *nearest;
  Item *items;
  Control *control;
};

template <class Offset, bool TIERED>
struct Spread {
  const Rows<Offset> &rows;
  const Nearest &of;
  const Grid grid;
  u32 level;  // the one that is being found
  u32 edges, leaving;

  __device__ u32 items(u32 vertex) const { return items_found(rows.offsets, vertex); }

  // A vertex hears of a source that is `level` away. Returns how many items that makes.
  __device__ u32 hear(u32 vertex, u32 distance, u32 source) {
    u32 found = 0;
    if (distance == NONE) {
      distance = atomicCAS(of.distance + vertex, NONE, level);
      if (distance == NONE)
        found = items(vertex), distance = level, leaving += (u32)entries_of(rows, vertex).count();
    }
    if (distance == level && source < of.nearest[vertex]) atomicMin(of.nearest + vertex, source);
    return found;
  }

  // Items of the last level tell their neighbours; what these are is queued.
  __device__ void tell(const Item *some, u32 count, Item *queue, u32 *queued) {
    auto own = [&](u32 vertex) { return of.nearest[vertex]; };
    auto look = [&](u64 edge) -> uint2 {
      const u32 vertex = entry<TIERED>(rows.targets, edge);
      return {vertex, of.distance[vertex]};
    };
    follow(rows.offsets, some, count, grid.crew(), own, look, [&](u32 mine, uint2 seen, bool any) {
      edges += any;
      push_items(queue, queued, seen.x, any ? hear(seen.x, seen.y, mine) : 0);
    });
  }

  // The same by vertices that no search has come to.
  __device__ void ask(Item *queue, u32 *queued) {
    visit_rows(rows, grid.crew(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
      const u32 distance = row == NONE ? 0 : __ldcg(of.distance + row);
      u32 least = NONE;
      if (distance == NONE || (distance == level && some.count() < whole.count()))
        for (u64 e = some.begin + lane; e < some.end; e += width, edges++) {
          const u32 target = entry<TIERED>(rows.targets, e);
          if (of.distance[target] == level - 1) least = min(least, __ldcg(of.nearest + target));
        }
      for (u32 step = width / 2; step; step /= 2) least = min(least, __shfl_xor_sync(ALL, least, step));
      push_items(queue, queued, row, lane == 0 && least != NONE ? hear(row, distance, least) : 0);
    });
  }
};

// sources: `count`, each another one. most: levels. twice: as of search_together.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    search_nearest(const __grid_constant__ Rows<Offset> rows, const __grid_constant__ Nearest of,
                   const u32 *sources, u32 count, u32 most, u32 twice) {
  Control &control = *of.control;
  Spread<Offset, TIERED> spread{rows, of, {&control.arrived}};
  u64 *const to[3] = {&control.looked, &control.leaving[0], &control.looked};
  for (u64 base = spread.grid.crew().warp * 32ull; base < count; base += spread.grid.crew().warps * 32ull) {
    const u32 i = (u32)base + lane_id(), source = i < count ? sources[i] : NONE;
    u32 found = 0;
    if (i < count) {
      of.distance[source] = 0, of.nearest[source] = i;
      found = spread.items(source), spread.leaving += (u32)entries_of(rows, source).count();
    }
    push_items(of.items, &control.queued[0], source, found);
  }
  add_sums({0, spread.leaving, 0}, to);
  spread.grid.meet();
  u64 left = rows.offsets[rows.rows];
  u32 first = 0, last = __ldcg(&control.queued[0]), levels = 0;
  while (first < last && levels < most) {
    const u32 slot = (levels + 1) % 3, after = (levels + 2) % 3;
    const u64 leaving = __ldcg(&control.leaving[levels % 3]);
    left -= leaving;
    if (spread.grid.leads()) control.queued[after] = 0, control.leaving[after] = 0;
    spread.level = levels + 1, spread.edges = spread.leaving = 0;
    if (twice && left + rows.rows < leaving)
      spread.ask(of.items + last, &control.queued[slot]);
    else
      spread.tell(of.items + first, last - first, of.items + last, &control.queued[slot]);
    u64 *const sums[3] = {&control.looked, &control.leaving[slot], &control.looked};
    add_sums({spread.edges, spread.leaving, 0}, sums);
    spread.grid.meet();
    first = last, last += __ldcg(&control.queued[slot]);
    levels += last > first;
  }
  if (spread.grid.leads()) control.levels = levels;
}

// What a rank of a search in a grid of partitions reads and writes (layouts 2d and 1d).
// gpu_ranks/grid_structures.py has the same structures.
//
// A rank numbers the vertices of whole partitions, each from a multiple of 1024 on: first its own;
// then those of other ranks in its grid columns, which it has rows of; then those in its grid rows
// alone, which are targets and nothing else. What is of other ranks are ghosts.
#include "ranks/laps.cuh"
#include "ranks/mail.cuh"
#include "ranks/names.cuh"

// The global id of a vertex.
struct GridName : Unchanged {
  GlobalIds ids;

  __device__ bool noted(u32 vertex) const { return true; }
  __device__ u32 operator()(u32 vertex) const { return ids.of(vertex); }
};

// What a rank tells all others in every round, in their memory.
struct GridArrival {
  u64 round;  // written last
  u64 push_work, pull_work;
  u32 found;  // vertices in its part of the frontier
  u32 unused;
};

// What another rank's mail says of a partition. It stands in that rank's memory, or in a copy here.
struct Letter {
  const u32 *mail[2];   // of even and odd rounds: bitmap
  const u32 *count[2];  // of the same: vertices; more than `words`: there is no list
  const u32 *parent;    // by place, of what it found; null where they are not at hand
  u32 *wanted;          // bitmap: those whose parent is still to come
  u32 words;
  u32 to_list;          // words from the bitmap to the list
  u32 at;               // words before the partition in bitmaps here
  u32 unused;
};

// The rounds of a superstep, each with mail of its own.
enum Round : u32 { NO_ROUND, EXPAND_COLUMNS, EXPAND_ROWS, FOLD };
// What letters are of: the frontier, as columns or as rows need it; what was found by pushes, which
// rows fold, or by pulls, which columns fold.
enum Kind : u32 { FRONTIER_OF_COLUMNS, VISITED_OF_ROWS, FOUND_IN_ROWS, FOUND_IN_COLUMNS, KINDS };

// A partition that a rank knows the vertices of.
struct Segment {
  u32 at;  // words before it in bitmaps
  u32 words;
  u32 in_columns;  // own: other ranks that have its grid column; of others: whether this one has
  u32 in_rows;     // the same of its row
};

// New vertices: how many, the edges that leave them here, those that enter, rows of these.
struct Weights {
  u64 found, forward, edges, rows;
};

struct GridControl {
  u64 arrived;
  u64 queued[2];
  Counters visits[2];  // of a superstep and the next
  Weights noted[2];
  u64 round;  // counts on from search to search
  u64 found, push_work, pull_work;    // of all ranks
  u64 own_push_work, own_pull_work;  // where the host tells them
  u64 forward;
  u64 unvisited_edges;
  u64 unvisited_rows;
  u64 pull_bound;
  u64 expand_bytes, fold_bytes;
  u32 status;
  u32 level;
  u32 own_found;
  u32 pending;  // the round whose mail the host carries
  u32 step;
  u32 stopped;
};

struct GridLevel {
  u64 examined;
  u64 clocks[PHASES];
  u64 expand_bytes;  // sent to all others together
  u64 fold_bytes;
  u32 found;  // of this rank's vertices
  u32 pulled;
};

// `search.visited`: what is visited, as far as is known here, and what was before this superstep's
// visits. `search.enqueue_edges`: vertices that the queue takes.
template <class Offset, class Distance>
struct GridRank {
  Search<Offset, Distance> search;  // without control and levels
  GridName name;
  const u32 *barren;  // bitmap: rows without edges to pull along
  u32 *frontier;      // bitmap, of rows
  u32 *told;          // bitmap, of own vertices: what other ranks of the grid row were told
  GridControl *control;
  GridLevel *levels;
  const Letter *letters[KINDS];
  const Segment *segments;  // own, then those of others
  GridArrival *const *peers;  // by rank, in its memory: of this one, of even and odd rounds
  GridArrival *arrivals;      // by rank, of even and odd rounds
  u32 *mail[2];               // bitmaps of all numbers, lists
  u32 *sent;                  // of even and odd rounds: vertices, by segment
  const u32 *stop;            // in host memory: not 0 if the search is to end
  u64 own_edges;              // that enter own vertices here
  u32 own_rows;               // of these, rows
  u32 letter_counts[KINDS];
  u32 own_segments;
  u32 segment_count;
  u32 rank;
  u32 ranks;
  u32 own_words;
  u32 row_words;  // of own vertices and those that there are rows of
  u32 words;      // of all
  u32 grid_rows;
  u32 grid_columns;
  u32 stage;
  u32 hosted;  // the host carries the mail: the launch ends when it is written
};

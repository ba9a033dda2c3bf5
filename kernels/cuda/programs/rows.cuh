// The rows of a graph, and how the warps of a grid share them, for programs that look at all of them.
//
// Rows that follow each other are a *turn*, by what they cost: one for a row, and one for each of its
// entries (Merrill, Garland: Merge-Based Parallel Sparse Matrix-Vector Multiplication, SC 2016). Cuts
// fall between rows. One that is longer than a turn is looked at in *parts* instead. A warp takes a turn
// or a part at a time, and in which order a row is added up does not depend on who takes what.
#include "base/targets.cuh"
#include "base/warp.cuh"
#include "base/work.cuh"

// turn_rows: of each turn the first row, and an end; a turn costs `turn`, or as much as its last row
// takes it beyond that. long_rows: those of more than `turn` entries; first_parts: of each the first of
// its parts, which are of `turn` entries, and an end. gpu_programs/rows.py packs the same structure.
template <class Offset>
struct Rows {
  const Offset *offsets;
  Targets targets;
  const u32 *turn_rows;
  const u32 *long_rows;
  const u32 *first_parts;
  u32 rows;
  u32 turns;
  u32 longs;
  u32 parts;
  u32 turn;
};

// Entries of a row, of a part of one, or none.
struct Entries {
  u64 begin, end;

  __device__ u64 count() const { return end - begin; }
};

template <class Offset>
__device__ inline Entries entries_of(const Rows<Offset> &rows, u32 row) {
  return {rows.offsets[row], rows.offsets[row + 1]};
}

// The place in `long_rows` of the row that a part is of.
template <class Offset>
__device__ inline u32 place_of(const Rows<Offset> &rows, u32 part) {
  return row_of(rows.first_parts, 0, rows.longs, part);
}

template <class Offset>
__device__ inline Entries entries_of_part(const Rows<Offset> &rows, u32 part, u32 place) {
  const Entries row = entries_of(rows, rows.long_rows[place]);
  const u64 begin = row.begin + (u64)(part - rows.first_parts[place]) * rows.turn;
  return {begin, min(begin + rows.turn, row.end)};
}

// How the rows of a turn are shared by the lanes of a warp: `width` of them take a row together, so that
// each has `few` of its entries: more, where a row is often left before its end.
struct Width {
  u32 width;

  __device__ Width(u64 entries, u32 rows, u32 few = FEW) {
    width = 1;
    while (width < 32 && entries > (u64)few * width * rows) width *= 2;
  }
  __device__ u32 lane() const { return lane_id() & (width - 1); }
  __device__ u32 row() const { return lane_id() / width; }
  __device__ u32 rows() const { return 32 / width; }

  static const u32 FEW = 4;
};

// Call `visit(row, entries, lane, width)` with each row of a turn that is not cut, by all lanes that
// take it; lanes for which there is none are given NONE and no entries. few: as of Width.
template <class Offset, class Visit>
__device__ inline void visit_turn(const Rows<Offset> &rows, u32 turn, Visit visit, u32 few = Width::FEW) {
  const u32 first = rows.turn_rows[turn];
  u32 last = rows.turn_rows[turn + 1];
  // Only the last one can be longer than a turn: what comes after it begins beyond this turn.
  if (first < last && entries_of(rows, last - 1).count() > rows.turn) last--;
  if (first == last) return;
  const Width share(rows.offsets[last] - rows.offsets[first], last - first, few);
  for (u32 base = first; base < last; base += share.rows()) {
    const u32 row = base + share.row();
    const bool any = row < last;
    visit(any ? row : NONE, any ? entries_of(rows, row) : Entries{0, 0}, share.lane(), share.width);
  }
}

// Units: parts of long rows, then turns. Call `visit(piece, some, lane, width)` with the pieces of one, a part
// or rows, which are counted after all parts, and their entries, by all lanes that take it. Lanes for which
// there is none as of visit_turn.
template <class Offset, class Visit>
__device__ inline void visit_unit(const Rows<Offset> &rows, u32 unit, Visit visit) {
  if (unit < rows.parts) {
    visit(unit, entries_of_part(rows, unit, place_of(rows, unit)), lane_id(), 32u);
  } else {
    visit_turn(rows, unit - rows.parts, [&](u32 row, Entries entries, u32 lane, u32 width) {
      visit(row == NONE ? NONE : rows.parts + row, entries, lane, width);
    });
  }
}

// Call `visit(row, whole, some, lane, width)` with all rows, by all lanes of a crew that take one, or a part
// of one; whole: its entries; some: all of them, or the part's. Lanes for which there is no row as of
// visit_turn. few: as of Width.
template <class Offset, class Visit>
__device__ inline void visit_rows(const Rows<Offset> &rows, Crew crew, Visit visit, u32 few = Width::FEW) {
  for (u32 unit = crew.warp; unit < rows.parts + rows.turns; unit += crew.warps) {
    if (unit < rows.parts) {
      const u32 place = place_of(rows, unit), row = rows.long_rows[place];
      visit(row, entries_of(rows, row), entries_of_part(rows, unit, place), lane_id(), 32u);
    } else {
      auto whole = [&](u32 row, Entries entries, u32 lane, u32 width) {
        visit(row, entries, entries, lane, width);
      };
      visit_turn(rows, unit - rows.parts, whole, few);
    }
  }
}

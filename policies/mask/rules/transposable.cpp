// Mask rule transposable: the M x M mask with N in every row and column that keeps the largest sum
// of magnitudes.
//
// Transportation on a dense tile: every row takes its N best, then columns that were taken too
// often hand elements to columns that were taken too rarely along shortest alternating paths.
#include "policies/mask/rules/transposable.hpp"

#include <bit>

#include "policies/mask/kernels/tile_4x4.hpp"

namespace numemu::policies {
namespace {

std::uint32_t bit(int i) { return std::uint32_t{1} << i; }
std::uint64_t bit64(int i) { return std::uint64_t{1} << i; }

// Calls visit(i) for every bit i that is set, the lowest first.
template <class Visit>
void for_each_bit(std::uint64_t bits, Visit&& visit) {
  for (; bits != 0; bits &= bits - 1) visit(std::countr_zero(bits));
}

// With prices u of rows and v of columns, gain(i, j) = cost - u - v is at least 0 where (i, j) is
// kept and at most 0 elsewhere: that holds from the first choice on, and proves a mask with the
// right column counts optimal (complementary slackness).
template <class Cost>
class Transport {
 public:
  Transport(const Cost* costs, int size, int kept) : costs_(costs), size_(size), kept_(kept) {}

  TileMask solve() {
    choose_in_rows();
    while (over_ != 0) move_one();
    settle_ties();
    return mask_;
  }

 private:
  static constexpr Cost kFar = ~(Cost{1} << (8 * sizeof(Cost) - 1));  // the largest
  static constexpr int kNone = -1;

  Cost gain(int i, int j) const { return costs_[i * size_ + j] - u_[i] - v_[j]; }

  void keep(int i, int j) {
    mask_.rows[i] |= bit(j);
    columns_[j] |= bit(i);
  }
  void drop(int i, int j) {
    mask_.rows[i] &= ~bit(j);
    columns_[j] &= ~bit(i);
  }

  // Columns cost their mean, so that they are chosen about equally often; every row takes the N
  // that gain most, the earlier of equal ones, and u is the least of these gains.
  void choose_in_rows() {
    for (int j = 0; j < size_; ++j) {
      Cost total = 0;
      for (int i = 0; i < size_; ++i) total += costs_[i * size_ + j];
      v_[j] = total / size_;
    }
    for (int i = 0; i < size_; ++i) {
      Cost row[kMostTile];
      for (int j = 0; j < size_; ++j) row[j] = costs_[i * size_ + j] - v_[j];
      for (int j = 0; j < size_; ++j) {
        int before = 0;  // elements of the row that come first
        for (int k = 0; k < j; ++k) before += row[k] >= row[j];
        for (int k = j + 1; k < size_; ++k) before += row[k] > row[j];
        if (before < kept_) keep(i, j);
        if (before == kept_ - 1) u_[i] = row[j];
      }
    }
    for (int j = 0; j < size_; ++j) {
      counts_[j] = std::popcount(columns_[j]);
      note_count(j);
    }
  }

  void note_count(int j) {
    over_ = counts_[j] > kept_ ? over_ | bit(j) : over_ & ~bit(j);
    under_ = counts_[j] < kept_ ? under_ | bit(j) : under_ & ~bit(j);
  }

  // Dijkstra from all columns over N to the nearest column under N. Leaving a column drops one of
  // its elements, leaving a row keeps another; each step costs what the sum loses. Nodes: columns,
  // then rows.
  void move_one() {
    Cost distance[2 * kMostTile];
    int from[2 * kMostTile], closed[2 * kMostTile], closed_count = 0;
    for (int node = 0; node < 2 * size_; ++node) distance[node] = kFar;
    for_each_bit(over_, [&](int j) {
      distance[j] = 0;
      from[j] = kNone;
    });
    // Nodes that are reached and not closed; those of them at distance `now`, the nearest.
    std::uint64_t open = over_, ready = over_;
    Cost now = 0;
    while ((ready & under_) == 0) {
      if (ready == 0) {
        now = kFar;
        for_each_bit(open, [&](int node) {
          if (distance[node] > now) return;
          if (distance[node] < now) ready = 0;
          now = distance[node];
          ready |= bit64(node);
        });
        continue;
      }
      const int node = std::countr_zero(ready);
      ready ^= bit64(node);
      open ^= bit64(node);
      closed[closed_count++] = node;
      const auto reach = [&](int next, Cost length) {
        if (now + length >= distance[next]) return;
        distance[next] = now + length;
        from[next] = node;
        open |= bit64(next);
        if (length == 0) ready |= bit64(next);
      };
      if (node < size_) {
        for_each_bit(columns_[node], [&](int i) { reach(size_ + i, gain(i, node)); });
      } else {
        const int i = node - size_;
        for_each_bit(all() & ~mask_.rows[i], [&](int j) { reach(j, -gain(i, j)); });
      }
    }
    int node = std::countr_zero(ready & under_);
    for (int k = 0; k < closed_count; ++k) {
      const int near = closed[k];
      const Cost nearer = distance[node] - distance[near];
      if (near < size_)
        v_[near] += nearer;
      else
        u_[near - size_] -= nearer;
    }
    ++counts_[node];
    note_count(node);
    while (from[node] != kNone) {
      const int row = from[node] - size_, next = from[from[node]];
      keep(row, node);
      drop(row, next);
      node = next;
    }
    --counts_[node];
    note_count(node);
  }

  std::uint32_t all() const { return ~std::uint32_t{0} >> (kMostTile - size_); }

  // Every optimal mask differs from this one in elements of gain zero only, which change along
  // cycles: keep (i, j), drop another of column j, keep another of its row, ... drop one of row i.
  // So each position in turn is kept if such a cycle through it is left.
  void settle_ties() {
    find_free();
    if (!has_cycle()) return;
    for (int i = 0; i < size_; ++i)
      for (int j = 0; j < size_; ++j) {
        if ((may_keep_[i] & bit(j)) != 0) {
          may_keep_[i] &= ~bit(j);
          turn_cycle(i, j);
        } else {
          may_drop_[j] &= ~bit(i);
        }
      }
  }

  void find_free() {
    for (int i = 0; i < size_; ++i) may_keep_[i] = may_drop_[i] = 0;
    for (int i = 0; i < size_; ++i)
      for (int j = 0; j < size_; ++j) {
        if (gain(i, j) != 0) continue;
        if (mask_(i, j))
          may_drop_[j] |= bit(i);
        else
          may_keep_[i] |= bit(j);
      }
  }

  // Takes away rows and columns that nothing leaves, as long as there are any.
  bool has_cycle() const {
    std::uint32_t rows = all(), columns = all();
    for (bool changed = true; changed;) {
      changed = false;
      for_each_bit(rows, [&](int i) {
        if ((may_keep_[i] & columns) != 0) return;
        rows &= ~bit(i);
        changed = true;
      });
      for_each_bit(columns, [&](int j) {
        if ((may_drop_[j] & rows) != 0) return;
        columns &= ~bit(j);
        changed = true;
      });
    }
    return rows != 0;
  }

  // Keeps (i, j) if free elements lead from column j back to row i.
  void turn_cycle(int i, int j) {
    int row_from[kMostTile], column_from[kMostTile];
    std::uint32_t rows = 0, columns = bit(j), fresh = columns;
    while (fresh != 0 && (rows & bit(i)) == 0) {
      std::uint32_t fresh_rows = 0, fresh_columns = 0;
      for_each_bit(fresh, [&](int c) {
        const std::uint32_t reached = may_drop_[c] & ~rows;
        for_each_bit(reached, [&](int r) { row_from[r] = c; });
        rows |= reached;
        fresh_rows |= reached;
      });
      for_each_bit(fresh_rows, [&](int r) {
        const std::uint32_t reached = may_keep_[r] & ~columns;
        for_each_bit(reached, [&](int c) { column_from[c] = r; });
        columns |= reached;
        fresh_columns |= reached;
      });
      fresh = fresh_columns;
    }
    if ((rows & bit(i)) == 0) return;
    for (int r = i;;) {
      const int c = row_from[r];
      drop(r, c);
      may_drop_[c] &= ~bit(r);
      may_keep_[r] |= bit(c);
      if (c == j) break;
      r = column_from[c];
      keep(r, c);
      may_keep_[r] &= ~bit(c);
      may_drop_[c] |= bit(r);
    }
    keep(i, j);
  }

  const Cost* costs_;
  int size_, kept_;
  TileMask mask_{size_};
  std::array<std::uint32_t, kMostTile> columns_ = {};  // the mask by columns
  std::array<int, kMostTile> counts_ = {};             // kept of each column
  std::uint32_t over_ = 0, under_ = 0;                 // columns that keep more, fewer than N
  Cost u_[kMostTile], v_[kMostTile] = {};
  // Of gain zero and not yet decided: columns of each row, rows of each column.
  std::array<std::uint32_t, kMostTile> may_keep_, may_drop_;
};

template <class Cost>
TileMask exact_in(const TileUnit& unit, const float* x, int size, int kept) {
  Cost costs[kMostTile * kMostTile];
  tile_costs(unit, x, size * size, costs);
  return exact_tile(costs, size, kept);
}

}  // namespace

template <class Cost>
TileMask exact_tile(const Cost* costs, int size, int kept) {
  return Transport<Cost>(costs, size, kept).solve();
}

template TileMask exact_tile<std::int64_t>(const std::int64_t*, int, int);
template TileMask exact_tile<Wide>(const Wide*, int, int);

TileMask exact_tile(const float* x, int size, int kept) {
  const TileUnit unit = tile_unit(x, size * size);
  return unit.narrow ? exact_in<std::int64_t>(unit, x, size, kept)
                     : exact_in<Wide>(unit, x, size, kept);
}

extern const MaskRule mask_transposable{
    .name = "transposable",
    .summary = "tiles with N of M in rows and columns, the largest sum of magnitudes",
    .source = "Hubara et al., NeurIPS 2021 (arXiv 2102.08124); here solved exactly",
    .span = MaskSpan::tile,
    .random = false,
    .unbiased = false,
    .options = {"layout", "repair", "refresh"},
    .prune =
        [](const MaskPolicy& policy, const RandomSource& random, const MaskRun& run) {
          if (policy.pattern.group == 4 && policy.pattern.kept == 2)
            return keep_4x4(run.x, run.count, run.y, run.keep);
          prune_tiles<exact_tile>(policy, random, run);
        },
    .error = tile_error<exact_tile>,
    .check = [](const MaskPolicy& policy) { require_tile("transposable", policy.pattern); }};

}  // namespace numemu::policies

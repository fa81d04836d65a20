// One-hot matrices: C alone, each place of A against all of B, each scale against each k.
#include "tests/oracle/cuda/layout/layout_check.hpp"

#include "tests/oracle/cuda/layout/layout_metadata.hpp"
#include "tests/oracle/cuda/layout/layout_questions.hpp"

namespace numemu::oracle::recording {
namespace {

/// A and B are zero: D must be C.
Complaints check_c(Machine& machine, const Instruction& i) {
  const Indices got = ask(machine, i, 1, bits_of(i.m * i.n), 0, one(i.d),
                          [&i](Batch& tiles, int tile, int, int bit) {
                            for (int place = 0; place < i.m * i.n; ++place)
                              if (has_bit(place, bit))
                                set_code(tiles.c, tile * i.m * i.n + place, i.c, one(i.c));
                          });
  Complaints wrong;
  for (int place = 0; place < i.m * i.n; ++place) {
    const int from = got[0][static_cast<std::size_t>(place)];
    if (from != place)
      wrong.add("with A and B zero " + element_name("D", place / i.n, place % i.n) + " holds " +
                index_name("C", from, i.n));
  }
  return wrong;
}

/// Whether wrong dots fill whole rows of one k (a wrong A), whole columns (a wrong B) or neither.
class Blame {
 public:
  explicit Blame(const Instruction& i) : i_(i), a_(i.m * i.kept()), b_(i.kept() * i.n) {}
  void add(int row, int kept, int column) {
    ++total_;
    ++a_[static_cast<std::size_t>(row * i_.kept() + kept)];
    ++b_[static_cast<std::size_t>(kept * i_.n + column)];
  }
  std::string operand() const {
    const bool by_rows = covers(a_, i_.n), by_columns = covers(b_, i_.m);
    const std::string operand = by_rows && by_columns ? "A or B"
                                : by_rows             ? "A"
                                : by_columns          ? "B"
                                                      : "A, B or D";
    return i_.sparsity == Sparsity::dense ? operand : operand + " (or the metadata)";
  }

 private:
  bool covers(const std::vector<int>& counts, int full) const {
    int sum = 0;
    for (const int count : counts)
      if (count == full) sum += count;
    return sum == total_;
  }

  const Instruction& i_;
  std::vector<int> a_, b_;
  int total_ = 0;
};

void check_products(Machine& machine, const Instruction& i, std::vector<std::string>& all) {
  const Indices got = ask(machine, i, i.kept(), bits_of(i.k * i.n), 0, one(i.d),
                          [&i](Batch& tiles, int tile, int shift, int bit) {
                            set_shifted_ones(tiles, tile, shift);
                            for (int k = 0; k < i.k; ++k)
                              for (int column = 0; column < i.n; ++column)
                                if (has_bit(k * i.n + column, bit)) set_b(tiles, tile, k, column);
                          });
  Complaints wrong;
  Blame blame(i);
  for (int shift = 0; shift < i.kept(); ++shift) {
    for (int place = 0; place < i.m * i.n; ++place) {
      const int row = place / i.n, column = place % i.n, kept = (row + shift) % i.kept();
      const int from = got[static_cast<std::size_t>(shift)][static_cast<std::size_t>(place)];
      const int expected = k_of(i, kept) * i.n + column;
      if (from == expected) continue;
      blame.add(row, kept, column);
      wrong.add("in " + element_name("D", row, column) + " the one at " +
                element_name("A", row, kept) + " met " + index_name("B", from, i.n) +
                ", expected " + index_name("B", expected, i.n));
    }
  }
  wrong.move_to(all, blame.operand());
}

/// B is one everywhere, A in one place of every row, by the bits of the row: D must name its row.
/// The shifts of check_products cannot tell rows that are equal modulo kept.
void check_rows(Machine& machine, const Instruction& i, std::vector<std::string>& all) {
  const Indices got = ask(machine, i, i.kept(), bits_of(i.m), 0, one(i.d),
                          [&i](Batch& tiles, int tile, int kept, int bit) {
                            for (int row = 0; row < i.m; ++row)
                              if (has_bit(row, bit)) set_a(tiles, tile, row, kept);
                            for (int k = 0; k < i.k; ++k)
                              for (int column = 0; column < i.n; ++column)
                                set_b(tiles, tile, k, column);
                          });
  Complaints wrong;
  Blame blame(i);
  for (int kept = 0; kept < i.kept(); ++kept) {
    for (int place = 0; place < i.m * i.n; ++place) {
      const int row = place / i.n, column = place % i.n;
      const int from = got[static_cast<std::size_t>(kept)][static_cast<std::size_t>(place)];
      if (from == row) continue;
      blame.add(row, kept, column);
      wrong.add("in " + element_name("D", row, column) + " of column " + std::to_string(kept) +
                " of A arrived " +
                (from < 0 ? index_name("A", from, 1) : element_name("A", from, kept)) +
                ", expected " + element_name("A", row, kept));
    }
  }
  wrong.move_to(all, blame.operand());
}

/// A and B are one at a single k; each scale in turn is doubled by the bits of its index.
void check_scales(Machine& machine, const Instruction& i, bool of_a,
                  std::vector<std::string>& all) {
  const int lines = of_a ? i.m : i.n;
  const Indices got =
      ask(machine, i, i.k, bits_of(lines * i.scales()), one(i.d), two(i.d),
          [&](Batch& tiles, int tile, int k, int bit) {
            for (int row = 0; row < i.m; ++row) set_a(tiles, tile, row, k);
            for (int column = 0; column < i.n; ++column) set_b(tiles, tile, k, column);
            std::vector<std::uint8_t>& scales = of_a ? tiles.scale_a : tiles.scale_b;
            for (int s = 0; s < lines * i.scales(); ++s)
              if (has_bit(s, bit))
                set_code(scales, tile * lines * i.scales() + s, i.scale, two(i.scale));
          });
  const char* matrix = of_a ? "scale_a" : "scale_b";
  Complaints wrong;
  for (int k = 0; k < i.k; ++k) {
    for (int place = 0; place < i.m * i.n; ++place) {
      const int line = of_a ? place / i.n : place % i.n;
      const int expected = line * i.scales() + k / i.block;
      const int from = got[static_cast<std::size_t>(k)][static_cast<std::size_t>(place)];
      if (from != expected)
        wrong.add("in " + element_name("D", place / i.n, place % i.n) + " the product of k " +
                  std::to_string(k) + " was scaled by " + index_name(matrix, from, i.scales()) +
                  ", expected " + index_name(matrix, expected, i.scales()));
    }
  }
  wrong.move_to(all, matrix);
}

}  // namespace

std::vector<std::string> check_layout(Machine& machine, const Instruction& i) {
  std::vector<std::string> products;
  check_rows(machine, i, products);
  check_products(machine, i, products);
  Complaints accumulator = check_c(machine, i);
  std::vector<std::string> all;
  accumulator.move_to(all, products.empty() ? "C" : "C or D");
  all.insert(all.end(), products.begin(), products.end());
  if (i.sparsity != Sparsity::dense)
    check_metadata(machine, i, products.empty() ? "metadata" : "metadata (or as above)", all);
  if (i.block != 0) {
    check_scales(machine, i, true, all);
    check_scales(machine, i, false, all);
  }
  return all;
}

}  // namespace numemu::oracle::recording

// Ranges and codebooks of rows: the vectors of the specification, PyTorch's greedy search bit for
// bit, fixed points of Lloyd's algorithm.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "formats/analysis/distribution.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/table/base/row_codebook.hpp"
#include "policies/table/base/row_range.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace embedding_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

const std::vector<float> kRow = {-1, -.4f, -.1f, 0, .05f, .2f, .35f, 2};

std::vector<float> normal_row(std::int64_t n, std::uint32_t tensor, float scale = 1) {
  const Distribution law = Distribution::parse("normal", false);
  RandomSource random;
  random.tensor = tensor;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(scale * static_cast<float>(law.draw(random, static_cast<std::uint64_t>(i))));
  return x;
}

double loss_of(const std::vector<float>& x, const std::vector<float>& book) {
  double sum = 0;
  for (const float v : x) sum += std::pow(double{v} - double{nearest_entry(book, v)}, 2);
  return sum;
}

}  // namespace

TEST_CASE("row range: the specification's row", "[fast]") {
  const RowRange whole = asymmetric_range(kRow);
  const RowCodes codes(whole, 4);
  CHECK(codes.scale() == Approx(0.19995117).epsilon(1e-7));
  CHECK(codes.bias() == -1);
  std::vector<int> found;
  for (const float x : kRow) found.push_back(codes.code(x));
  CHECK(found == std::vector<int>{0, 3, 5, 5, 5, 6, 7, 15});
  CHECK(row_loss(kRow, whole, 4) == Approx(0.122239).margin(5e-7));

  const RowRange greedy = greedy_range(kRow, 4, {});
  CHECK(greedy.low == Approx(-0.97).margin(1e-5));
  CHECK(greedy.high == Approx(1.985).margin(1e-5));
  CHECK(row_loss(kRow, greedy, 4) == Approx(0.115579).margin(5e-7));
  const RowRange fine = greedy_range(kRow, 4, {1000, 0.5});
  CHECK(fine.low == Approx(-0.976).margin(1e-5));
  CHECK(fine.high == Approx(1.994).margin(1e-5));
  CHECK(row_loss(kRow, fine, 4) == Approx(0.115012).margin(5e-7));

  const RowRange both = symmetric_range(kRow);
  CHECK(both.low == -2);
  CHECK(both.high == 2);
}

TEST_CASE("row range: a constant row has scale 1 and the float16 constant", "[fast]") {
  const std::vector<float> row(5, 0.1f);
  const RowRange range = greedy_range(row, 4, {});
  const RowCodes codes(range, 4);
  CHECK(codes.value(codes.code(0.1f)) == 0.0999755859375f);  // float16 of 0.1
  CHECK(codes.code(0.1f) == 0);
  // 0.5 is a float16 number: nothing is left to reach.
  CHECK(RowCodes({0.5f, 0.5f}, 4).scale() == 1);
}

TEST_CASE("row range: hostile elements", "[fast]") {
  const float inf = HUGE_VALF;
  const std::vector<float> row = {NAN, -inf, 1, 3, inf, 1e30f};
  const RowRange range = asymmetric_range(row);
  CHECK(range.low == 1);
  CHECK(range.high == 1e30f);
  const RowCodes codes(range, 4);
  CHECK(codes.code(NAN) == 15);
  CHECK(codes.code(inf) == 15);
  CHECK(codes.code(-inf) == 0);
  for (const float x : row) CHECK(std::isfinite(codes.value(codes.code(x))));
  CHECK(asymmetric_range(std::vector<float>{NAN}).high == 0);
  // Steps below an ulp end the search.
  const std::vector<float> close = {16777216, 16777218};
  CHECK_NOTHROW(greedy_range(close, 4, {65536, 1}));
}

TEST_CASE("row range: without a local optimum the search returns the whole range", "[fast]") {
  int fallbacks = 0;
  for (std::uint32_t r = 0; r < 8; ++r) {
    const std::vector<float> row = normal_row(1024, r);
    const RowRange whole = asymmetric_range(row);
    bool optimum = true;
    const RowRange found = greedy_range(row, 4, {}, &optimum);
    const RowRange seen = greedy_range(row, 4, {.best_seen = true});
    CHECK(row_loss(row, seen, 4) <= row_loss(row, found, 4));
    if (optimum) continue;
    ++fallbacks;
    CHECK(found.low == whole.low);
    CHECK(found.high == whole.high);
    CHECK(row_loss(row, seen, 4) < row_loss(row, whole, 4));
  }
  CHECK(fallbacks >= 2);  // in about half of such rows
}

TEST_CASE("row range: the greedy search has the bits of PyTorch", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const auto python = [&](const std::string& script) {
    numemu::test::write_file(folder / "s.py", script);
    const int status =
        std::system(("/usr/bin/python3 " + (folder / "s.py") + " 2>/dev/null").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  struct Search {
    int bits;
    std::int64_t bins;
    double share;
  };
  const std::vector<Search> searches = {
      {4, 200, 0.16}, {4, 1000, 0.5}, {2, 200, 0.16}, {8, 50, 0.3}};
  std::vector<std::vector<float>> rows = {kRow, std::vector<float>(9, 0.1f)};
  for (std::uint32_t r = 0; r < 24; ++r)
    rows.push_back(normal_row(3 + 37 * r, r, std::ldexp(1.0f, static_cast<int>(r % 9) - 6)));
  rows.push_back(normal_row(1024, 99));
  std::ostringstream script;
  // A module that is not there has a status of its own: to import it once more takes seconds.
  constexpr int kAbsent = 77;
  script << "import struct, sys\ntry:\n  import torch\nexcept ImportError:\n  sys.exit(" << kAbsent
         << ")\nout = open('" << (folder / "out") << "', 'w')\n"
         << "def row(*bits): return torch.tensor([struct.unpack('<f', struct.pack('<I', b))[0] for "
            "b in bits])\n"
         << "for x in [";
  for (const std::vector<float>& row : rows) {
    script << "row(";
    for (const float x : row) script << std::bit_cast<std::uint32_t>(x) << ",";
    script << "),";
  }
  script << "]:\n  for b, n, s in [";
  for (const Search& s : searches)
    script << "(" << s.bits << "," << s.bins << "," << s.share << "),";
  script << "]:\n    high, low = torch.choose_qparams_optimized(x, len(x), n, s, b)\n"
         << "    for v in (low, high): out.write('%d ' % struct.unpack('<I', struct.pack('<f', "
            "v.item()))[0])\n";
  const int status = python(script.str());
  constexpr int kNoPython = 127;  // of the shell
  if (status == kAbsent || status == kNoPython) {
    WARN("skipped: no PyTorch for /usr/bin/python3");
    return;
  }
  REQUIRE(status == 0);
  std::istringstream given(read_text(folder / "out"));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const Search& s : searches) {
      INFO("row " << r << ", bits " << s.bits << ", bins " << s.bins);
      std::uint32_t low = 0, high = 0;
      REQUIRE(given >> low >> high);
      const RowRange found = greedy_range(rows[r], s.bits, {s.bins, s.share});
      CHECK(std::bit_cast<std::uint32_t>(found.low) == low);
      CHECK(std::bit_cast<std::uint32_t>(found.high) == high);
    }
  }
}

TEST_CASE("row codebook: a fixed point of Lloyd's algorithm, better than the grid", "[fast]") {
  const std::vector<float> row = normal_row(500, 3);
  const std::vector<float> grid = lloyd_codebook(row, 4, 0), book = lloyd_codebook(row, 4);
  REQUIRE(book.size() == 16);
  CHECK(std::is_sorted(book.begin(), book.end()));
  CHECK(loss_of(row, book) < loss_of(row, grid));
  constexpr double kFloat16 = 0x1p-11;  // relative, of an entry
  for (const float entry : book) {
    double sum = 0;
    int count = 0;
    for (const float x : row) {
      if (nearest_entry(book, x) != entry) continue;
      sum += x;
      ++count;
    }
    if (count == 0) continue;
    // Entries were rounded after the last assignment, which one element may have crossed.
    const double slack = std::fabs(double{entry}) * kFloat16 + 0.3 / count;
    CHECK(std::fabs(sum / count - entry) <= slack);
  }
  // At most 16 distinct values at equal steps are exact.
  const std::vector<float> few = {-1.5f, 0, 0.5f, 6};
  for (const float x : few) CHECK(nearest_entry(lloyd_codebook(few, 4), x) == x);
  CHECK(lloyd_codebook(std::vector<float>{NAN}, 2) == std::vector<float>(4, 0.0f));
}

TEST_CASE("row codebook: the nearest entry, the lower one on ties", "[fast]") {
  const std::vector<float> book = {-1, 0, 0, 2};
  const std::vector<std::pair<float, float>> cases = {{-9, -1},  {-.5f, -1}, {-.4f, 0}, {1, 0},
                                                      {1.1f, 2}, {9, 2},     {2, 2}};
  for (const auto& [x, nearest] : cases) CHECK(nearest_entry(book, x) == nearest);
  CHECK(nearest_entry(book, NAN) == 2);
}

TEST_CASE("row codebook: rows are clustered by what they are", "[fast]") {
  std::vector<float> table;
  for (int r = 0; r < 12; ++r) {
    const float level = r % 3 == 0 ? 10.0f : r % 3 == 1 ? 1.0f : -20.0f;
    for (int c = 0; c < 4; ++c) table.push_back(level + 0.01f * static_cast<float>(r + c));
  }
  const std::vector<std::int64_t> of = cluster_rows(table, 4, 3);
  REQUIRE(of.size() == 12);
  for (std::size_t r = 3; r < 12; ++r) CHECK(of[r] == of[r % 3]);
  CHECK(of[0] != of[1]);
  CHECK(of[1] != of[2]);
  CHECK(cluster_rows(table, 4, 100).size() == 12);  // more clusters than rows
}

}  // namespace embedding_test

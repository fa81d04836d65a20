// Masks of whole tensors against decisions cut out one by one.
#include "policies/mask/mask_tensor.hpp"

#include <omp.h>

#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace mask_tensor_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

constexpr std::uint64_t kFirst = 1000;  // number of the first decision
const RandomSource kRandom{7, Stream::mask, 99, 0};

struct Pruned {
  std::vector<float> y;
  std::vector<std::uint8_t> keep;
  bool operator==(const Pruned&) const = default;
};

Pruned fast(const MaskPolicy& policy, const MaskLayout& layout, const std::vector<float>& x) {
  Pruned out{std::vector<float>(x.size(), -1), std::vector<std::uint8_t>(x.size(), 9)};
  mask_tensor(policy, kRandom, layout, kFirst, 0, x.data(), out.y.data(), out.keep.data());
  return out;
}

/// Places of every decision in row-major order, -1 beyond the tensor.
std::vector<std::vector<std::int64_t>> decisions(const MaskPolicy& p, const MaskLayout& l) {
  const std::int64_t m = p.pattern.group;
  const auto at = [&](std::int64_t o, std::int64_t r, std::int64_t i, std::int64_t c) {
    return r < l.rows && c < l.width ? ((o * l.rows + r) * l.inner + i) * l.width + c : -1;
  };
  std::vector<std::vector<std::int64_t>> out;
  const bool tiles = p.rule->span == MaskSpan::tile;
  if (tiles && p.layout == TileLayout::channel) {
    const std::int64_t line = l.inner * l.width;
    for (std::int64_t o = 0; o < l.outer * l.rows; ++o) {
      for (std::int64_t b = 0; b < line; b += m * m) {
        auto& d = out.emplace_back();
        for (std::int64_t e = b; e < b + m * m; ++e) d.push_back(e < line ? o * line + e : -1);
      }
    }
    return out;
  }
  const std::int64_t rows = tiles || l.along_rows ? m : 1, columns = tiles || !l.along_rows ? m : 1;
  for (std::int64_t o = 0; o < l.outer; ++o) {
    for (std::int64_t r = 0; r < l.rows; r += rows) {
      for (std::int64_t i = 0; i < l.inner; ++i) {
        for (std::int64_t c = 0; c < l.width; c += columns) {
          auto& d = out.emplace_back();
          for (std::int64_t dr = 0; dr < rows; ++dr)
            for (std::int64_t dc = 0; dc < columns; ++dc) d.push_back(at(o, r + dr, i, c + dc));
        }
      }
    }
  }
  return out;
}

Pruned by_hand(const MaskPolicy& policy, const MaskLayout& layout, const std::vector<float>& x) {
  Pruned out{x, std::vector<std::uint8_t>(x.size(), 1)};
  std::uint64_t number = kFirst;
  for (const auto& places : decisions(policy, layout)) {
    std::vector<float> in, y(places.size());
    std::vector<std::uint8_t> keep(places.size());
    bool whole = true;
    for (const std::int64_t place : places) {
      in.push_back(place < 0 ? 0 : x[place]);
      whole = whole && place >= 0;
    }
    if (!whole && policy.remainder == Remainder::dense) continue;
    policy.rule->prune(policy, kRandom, {in.data(), y.data(), keep.data(), 1, number++, 0});
    for (std::size_t e = 0; e < places.size(); ++e) {
      if (places[e] < 0) continue;
      out.y[places[e]] = y[e];
      out.keep[places[e]] = keep[e];
    }
  }
  CHECK(number - kFirst == decision_count(policy, layout));
  return out;
}

}  // namespace

TEST_CASE("mask tensor: every layout equals its decisions one by one", "[fast]") {
  const MaskLayout layouts[] = {{1, 3, 1, 16, false},  {2, 8, 3, 8, false},    {1, 5, 1, 11, false},
                                {1, 16, 1, 3, true},   {2, 8, 3, 5, true},     {1, 11, 1, 7, true},
                                {1, 40, 1, 700, true}, {1, 9, 2, 2049, false}, {3, 8, 2, 16, false},
                                {1, 10, 9, 6, false}};
  const int threads = omp_get_max_threads();
  for (const char* text :
       {"greedy(2:4", "random(4:8", "greedy(1:2", "greedy(8:16", "greedy(3:5", "sequential(4:8",
        "transposable(2:4", "transposable(2:4,layout=channel", "transposable(2:6",
        "transposable-greedy(2:4", "transposable-2approx(2:4", "mvue(1:2", "mvue(2:4",
        "mvue-approx(2:4", "random-unbiased(2:4"}) {
    for (const MaskLayout& layout : layouts) {
      for (const char* remainder : {"pad", "dense", "error"}) {
        const MaskPolicy policy = parse_mask(std::string(text) + ",remainder=" + remainder + ")");
        INFO(to_string(policy) << " on [" << layout.outer << ", " << layout.rows << ", "
                               << layout.inner << ", " << layout.width << "]"
                               << (layout.along_rows ? " along rows" : ""));
        const std::vector<float> x = numemu::policies::test::noise({layout.size()}, 3).data;
        bool tail = false;
        for (const auto& places : decisions(policy, layout))
          for (const std::int64_t place : places) tail = tail || place < 0;
        if (policy.remainder == Remainder::error && tail) {
          CHECK_THROWS_WITH(fast(policy, layout, x), Contains("expected a multiple of"));
          continue;
        }
        const Pruned expected = by_hand(policy, layout, x);
        omp_set_num_threads(1);
        CHECK(fast(policy, layout, x) == expected);
        omp_set_num_threads(2);
        CHECK(fast(policy, layout, x) == expected);
        omp_set_num_threads(threads);
      }
    }
  }
}

TEST_CASE("mask tensor: absorbing keeps the sums of groups and tile rows", "[fast]") {
  for (const char* text : {"greedy(2:4,repair=absorb)", "transposable(2:4,repair=absorb)"}) {
    const MaskPolicy policy = parse_mask(text);
    const MaskLayout layout{1, 8, 2, 12, false};
    const std::vector<float> x = numemu::policies::test::noise({layout.size()}, 5).data;
    const Pruned out = fast(policy, layout, x);
    std::vector<float> again(x.size());
    apply_mask(policy, layout, x.data(), out.keep.data(), again.data());
    CHECK(again == out.y);
    for (std::size_t g = 0; g < x.size(); g += 4) {
      double before = 0, after = 0, size = 0;
      for (std::size_t i = g; i < g + 4; ++i) {
        before += x[i];
        after += out.y[i];
        size += std::abs(x[i]) + std::abs(out.y[i]);
        CHECK((out.keep[i] == 1 || out.y[i] == 0));
      }
      CHECK(std::abs(before - after) <= size * 0x1p-23);  // one rounding of each kept element
    }
  }
}

TEST_CASE("mask tensor: an applied mask is the mask, and nothing is empty", "[fast]") {
  const MaskPolicy policy = parse_mask("greedy(2:4)");
  const MaskLayout layout{1, 4, 1, 8, false};
  const std::vector<float> x = numemu::policies::test::noise({32}, 9).data;
  const Pruned out = fast(policy, layout, x);
  std::vector<float> y(32);
  apply_mask(policy, layout, x.data(), out.keep.data(), y.data());
  CHECK(y == out.y);
  CHECK(fast(policy, {1, 0, 1, 8, false}, {}).y.empty());
  CHECK(fast(policy, {1, 4, 1, 0, true}, {}).y.empty());
  CHECK_THROWS_WITH(fast(policy, {1, 4, 1, 6, false}, std::vector<float>(24)),
                    Contains("multiple of 4 along the channels, found 6"));
  CHECK_THROWS_WITH(fast(policy, {1, 6, 1, 4, true}, std::vector<float>(24)),
                    Contains("multiple of 4 along the rows, found 6"));
}

}  // namespace mask_tensor_test

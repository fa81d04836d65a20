// Blocks along columns against quantize_blocks_reference() of a copy transposed by hand.
#include <omp.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "formats/scaling/quantize_blocks.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "tests/catch.hpp"

namespace numemu::quantize_columns_test {
namespace {

std::vector<float> transposed(const std::vector<float>& x, std::int64_t count, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> y(x.size());
  for (std::int64_t m = 0; m < count; ++m)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        y[(m * columns + c) * rows + r] = x[(m * rows + r) * columns + c];
  return y;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr const char* kFormats[] = {"mxfp4",
                                    "mxfp8_e4m3",
                                    "nvfp4",
                                    "mx(e2m1,20)",
                                    "group(e4m3fn,128,float32)",
                                    "group(int4,32,float16)",
                                    "group(int5,16,float8_e4m3fn,tensor-scale)",
                                    "group(nf4,20,float8_e4m3fn)",
                                    "mx(e3m0+finite,32)"};

TEST_CASE("blocks along columns are those of the transposed matrices", "[fast]") {
  std::mt19937 generator(3);
  std::normal_distribution<float> normal;
  for (const char* name : kFormats) {
    const BlockFormat& format = find_block_format(name);
    struct Way {
      const char* rounding;
      std::string rule;
    };
    std::vector<Way> ways;
    for (const char* rounding : {"rne", "sr(8)", "sr(16)"})
      ways.push_back({rounding, format.default_rule});
    if (format.tensor_scale) ways.push_back({"rne", "four-over-six"});
    for (const Way& way : ways) {
      for (const std::int64_t length : {1, 31, 96, 300}) {
        for (const std::int64_t across : {1, 3, 16, 70}) {
          for (const std::int64_t outer : {1, 2}) {
            std::vector<float> x(static_cast<std::size_t>(outer * length * across));
            for (float& v : x) v = normal(generator) * (generator() % 5 == 0 ? 1e-3F : 1);
            if (length > 40) x[x.size() / 3] = std::nanf("");
            BlockQuantization how{.format = &format, .rule = &find_scale_rule(way.rule, format)};
            how.element.rounding = parse_rounding(way.rounding);
            how.element.random = {.seed = 5, .tensor = 7};
            std::vector<std::uint32_t> words(x.size());
            for (std::uint32_t& w : words) w = static_cast<std::uint32_t>(generator());
            if (outer == 2) how.element.random_words = words.data();
            const std::vector<float> lines = transposed(x, outer, length, across);
            std::vector<float> want(x.size()), y(x.size());
            const BlockCounts counts =
                quantize_blocks_reference(how, block_layout(format, {outer * across, length}, 1),
                                          lines.data(), {}, want.data());
            want = transposed(want, outer, across, length);
            INFO(name << " " << way.rule << " " << way.rounding << " " << outer << " x " << length
                      << " x " << across);
            const int before = omp_get_max_threads();
            for (const int threads : {1, 2}) {
              omp_set_num_threads(threads);
              CHECK(quantize_columns(how, outer, length, across, x.data(), y.data()) == counts);
              CHECK(same(y, want));
            }
            omp_set_num_threads(before);
            CHECK(quantize_columns_reference(how, outer, length, across, x.data(), y.data()) ==
                  counts);
            CHECK(same(y, want));
          }
        }
      }
    }
  }
}

TEST_CASE("matrices are transposed one by one", "[fast]") {
  std::vector<float> x(3 * 45 * 70), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  transpose(x.data(), 3, 45, 70, y.data());
  CHECK(same(y, transposed(x, 3, 45, 70)));
}

}  // namespace
}  // namespace numemu::quantize_columns_test

// Transposed matrices of every small size, between strides, on every instruction set.
#include "formats/simd/transpose.hpp"

#include <hwy/targets.h>

#include <vector>

#include "tests/catch.hpp"

namespace numemu::simd::transpose_test {
namespace {

TEST_CASE("every element of a transposed matrix lies at its place, and nothing else is written",
          "[fast]") {
  constexpr std::uint32_t kUntouched = 0xffffffff;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    std::int64_t wrong = 0;
    for (std::int64_t rows = 0; rows <= 35; ++rows) {
      for (std::int64_t columns = 0; columns <= 35; ++columns) {
        const std::int64_t in_stride = columns + rows % 3, out_stride = rows + columns % 3;
        std::vector<std::uint32_t> in(static_cast<std::size_t>(rows * in_stride));
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i);
        std::vector<std::uint32_t> out(static_cast<std::size_t>(columns * out_stride), kUntouched);
        transpose_words(in.data(), rows, columns, in_stride, out.data(), out_stride);
        for (std::int64_t c = 0; c < columns; ++c)
          for (std::int64_t r = 0; r < out_stride; ++r)
            wrong += out[c * out_stride + r] != (r < rows ? in[r * in_stride + c] : kUntouched);
      }
    }
    INFO(hwy::TargetName(target));
    CHECK(wrong == 0);
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace numemu::simd::transpose_test

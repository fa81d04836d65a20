// Column sums equal the pairwise sum of each column, bit for bit.
#include "emu/net/sums.hpp"

#include <omp.h>

#include "formats/portable/pairwise.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("column sums are pairwise sums bit for bit, for 1, 2 and 3 threads", "[fast]") {
  constexpr std::int64_t kColumns = 6;
  for (const std::int64_t rows : {1, 63, 64, 65, 127, 128, 129, 1000, 4097, 20011}) {
    Tensor x = test::random_tensor({rows, kColumns}, 1);
    for (float& v : x.data) v *= v * v;  // more bits, so that the order of additions shows
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      const std::vector<double> sums = column_sums(x.data.data(), rows, kColumns);
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const double expected =
            pairwise_sum(rows, [&](std::int64_t r) { return double{x.data[r * kColumns + c]}; });
        CHECK(sums[c] == expected);
      }
    }
  }
  omp_set_num_threads(omp_get_num_procs());
}

}  // namespace
}  // namespace numemu::net

#include "policies/numerics/unit_sum.hpp"

#include <algorithm>

#include "emu/net/tensor.hpp"
#include "emu/unit/gather.hpp"
#include "policies/numerics/unit_result.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {

void add_on_unit(const unit::Unit& unit, std::span<const float* const> addends, std::int64_t n,
                 float* sum,
                 const std::function<net::ProductRandom(std::int64_t tile)>& random_of) {
  constexpr std::int64_t kTile = 4096;
  const auto depth = static_cast<std::int64_t>(addends.size());
  const net::Tensor ones({1, depth}, 1);
  for (std::int64_t first = 0; first < n; first += kTile) {
    const std::int64_t m = std::min(kTile, n - first);
    net::Tensor values({m, depth});
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t i = 0; i < m; ++i)
        values.data[static_cast<std::size_t>(i * depth + k)] =
            addends[static_cast<std::size_t>(k)][first + i];
    }
    const unit::Gather values_rows = unit::Gather::matrix(m, depth),
                       ones_row = unit::Gather::matrix(1, depth);
    const net::Product product{
        .layer = "exchange",
        .m = m,
        .n = 1,
        .k = depth,
        .a = {.source = &values, .gather = &values_rows, .stack = {.width = depth}},
        .b = {.source = &ones, .gather = &ones_row, .stack = {.width = depth}},
        .d = sum + first};
    UnitResult result(unit, product);
    net::multiply(unit, product, {&float32(), values.data.data()}, {&float32(), ones.data.data()},
                  random_of(first / kTile), result.target());
    result.finish({}, {});
  }
}

}  // namespace numemu::policies

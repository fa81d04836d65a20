#include "policies/calibrate/adaprune.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"

namespace numemu::policies {

void AdaPrune::product(const net::Step& step, const net::Product& p) {
  net::Numerics::product(step, p);
  if (p.b.role != net::Role::weight || !layers_.contains(p.layer)) return;
  collect(p, true, squares_[std::string(p.layer)]);
}

std::int64_t AdaPrune::matrices(std::string_view layer) const {
  const auto found = squares_.find(layer);
  if (found == squares_.end())
    throw Error(fmt::format("adaprune: the network computes no product of layer {}", layer));
  return static_cast<std::int64_t>(found->second.size());
}

net::Tensor AdaPrune::solve(std::string_view layer, const net::Tensor& masked,
                            const std::vector<std::uint8_t>& keep) const {
  const std::int64_t count = matrices(layer), each = masked.size() / count;
  net::Tensor out(masked.shape);
  for (std::int64_t i = 0; i < count; ++i) {
    const LeastSquares& squares = squares_.find(layer)->second[static_cast<std::size_t>(i)];
    const std::vector<float> solved =
        squares.solve({.prior = masked.data.data() + i * each, .mask = keep.data() + i * each});
    std::copy(solved.begin(), solved.end(), out.data.begin() + i * each);
  }
  return out;
}

}  // namespace numemu::policies

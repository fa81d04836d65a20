#include "policies/calibrate/adaprune.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"

namespace numemu::policies {

void AdaPrune::product(const net::Step& step, const net::Product& p) {
  net::Numerics::product(step, p);
  if (p.b.role != net::Role::weight || !layers_.contains(p.layer)) return;
  auto [found, fresh] = squares_.try_emplace(std::string(p.layer));
  const std::int64_t weights = p.b.stack.count();
  if (fresh) found->second.assign(static_cast<std::size_t>(weights), LeastSquares(p.k, p.n));
  std::vector<float> y(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    for (std::int64_t r = 0; r < p.m; ++r)
      std::copy_n(p.d + p.d_stack.row(i, r, p.m) * p.n, p.n, y.data() + r * p.n);
    found->second[static_cast<std::size_t>(weights == 1 ? 0 : i)].add(p, i, y.data());
  }
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

#include "emu/oracle/lost_products.hpp"

#include <utility>

#include "emu/oracle/draft.hpp"

namespace numemu::oracle {

std::vector<int> lost_products(const Ports& ports,
                               const std::function<std::uint64_t(const Dot&)>& device) {
  const std::optional<Dot> none = Draft(ports).dot();
  if (!ports.sparsity.dense() || !none) return {};
  const std::uint64_t nothing = device(*none);
  std::vector<int> lost;
  for (int p = 0; p < ports.k; ++p) {
    const std::optional<Dot> one = Draft(ports).product(p, number(1)).dot();
    if (!one) return {};
    if (device(*one) == nothing) lost.push_back(p);
  }
  if (static_cast<int>(lost.size()) == ports.k) lost.clear();
  return lost;
}

Dot without_products(Dot dot, const std::vector<int>& positions) {
  for (const int p : positions)
    dot.a[static_cast<std::size_t>(p)] = dot.b[static_cast<std::size_t>(p)] = 0;
  return dot;
}

}  // namespace numemu::oracle

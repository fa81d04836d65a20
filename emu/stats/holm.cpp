// Cold: a negligible share of any run (docs/build.md).
#include "emu/stats/holm.hpp"

#include <algorithm>
#include <numeric>

namespace numemu::stats {

std::vector<bool> holm(const std::vector<double>& p_values, double level) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (p_values[i] == p_values[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> rejected(p_values.size(), false);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    // The smallest must pass level / m, the next level / (m - 1), until one does not.
    if (p_values[order[rank]] > level / static_cast<double>(order.size() - rank)) break;
    rejected[order[rank]] = true;
  }
  return rejected;
}

}  // namespace numemu::stats

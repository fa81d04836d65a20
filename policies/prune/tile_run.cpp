#include "policies/prune/tile_run.hpp"

#include <string>

#include "formats/error.hpp"

namespace numemu::policies {

double pruned_squares(const TileMask& mask, const float* x) {
  double sum = 0;
  for (int i = 0; i < mask.size; ++i)
    for (int j = 0; j < mask.size; ++j, ++x)
      if (!mask(i, j)) sum += double{*x} * *x;
  return sum;
}

void require_tile(const char* rule, const unit::Pattern& p) {
  const std::string text = std::to_string(p.kept) + ":" + std::to_string(p.group);
  if (p.pairwise)
    throw Error(std::string(rule) + ": expected a pattern of single elements, not " + text +
                " of pairs");
  if (p.kept < 1 || p.kept > p.group || p.group > kMostTile)
    throw Error(std::string(rule) + ": expected N:M with 1 <= N <= M <= " +
                std::to_string(kMostTile) + ", not " + text);
}

}  // namespace numemu::policies

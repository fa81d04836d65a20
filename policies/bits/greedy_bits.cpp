#include "policies/bits/greedy_bits.hpp"

#include <cstddef>
#include <queue>
#include <utility>

#include "policies/bits/allocation.hpp"

namespace numemu::policies {

double item_loss(const BitItem& item, int bits) {
  const double steps = (1 << bits) - 1;
  return item.sensitivity / (steps * steps);
}

double bits_loss(const std::vector<BitItem>& items, const std::vector<int>& bits) {
  double sum = 0;
  for (std::size_t i = 0; i < items.size(); ++i) sum += item_loss(items[i], bits[i]);
  return sum;
}

std::vector<int> greedy_bits(const std::vector<BitItem>& items, double budget) {
  std::vector<int> bits(items.size(), kMostItemBits);
  double used = 0;
  // The largest of (negative price, index) comes first.
  std::priority_queue<std::pair<double, std::size_t>> prices;
  const auto offer = [&](std::size_t i) {
    if (bits[i] == 1) return;
    const double more = item_loss(items[i], bits[i] - 1) - item_loss(items[i], bits[i]);
    prices.emplace(-more / items[i].weight, i);
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    used += items[i].weight * kMostItemBits;
    offer(i);
  }
  while (!keeps_limits({used}, {budget}) && !prices.empty()) {
    const std::size_t i = prices.top().second;
    prices.pop();
    --bits[i];
    used -= items[i].weight;
    offer(i);
  }
  return bits;
}

}  // namespace numemu::policies

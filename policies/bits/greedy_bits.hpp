// Bits per item under a budget, by the greedy algorithm of ActNN (Chen et al., ICML 2021).
#pragma once
#include <vector>

namespace numemu::policies {

/// Something stored with 1 to 8 bits per element, whose squared error with b bits is
/// sensitivity / (2^b - 1)^2.
struct BitItem {
  double sensitivity = 0;  ///< finite, at least 0
  double weight = 1;       ///< elements, above 0
};

inline constexpr int kMostItemBits = 8;

/// The squared error of one item with that many bits, and the sum over items.
double item_loss(const BitItem&, int bits);
double bits_loss(const std::vector<BitItem>&, const std::vector<int>& bits);

/// Starts with 8 bits each and takes one bit at a time from the item whose error grows least per
/// weight (of equal ones that with the larger index), until the sum of weight bits is at most
/// `budget` or all items have 1 bit. With equal weights this is the optimum, as errors are convex
/// in the bits. O(N log N).
std::vector<int> greedy_bits(const std::vector<BitItem>&, double budget);

}  // namespace numemu::policies

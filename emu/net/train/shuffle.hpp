// The order of the training images in an epoch: a function of seed and epoch.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::net {

/// A permutation of [0, count): Fisher and Yates, position i drawing from 32 random bits. count <
/// 2^32.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

}  // namespace numemu::net

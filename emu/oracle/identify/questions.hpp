// Dots whose results tell units apart: built for one aspect each, or random.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emu/oracle/dots/draft.hpp"

namespace numemu::oracle {

/// The probes, and every other question that the ports can express: masks that hide what is summed
/// beside a large product, sweeps of the distance of two numbers, ties, subnormals, zeros,
/// infinities and NaN, results at the ends of the range. Some thousands.
std::vector<AskedDot> constructed_questions(const Ports&);

/// Random dots of six kinds in turn: near 1, wide, any code, cancelling, small, large. Dot `first`
/// + i is a pure function of the seed and that number.
std::vector<AskedDot> random_questions(const Ports&, std::uint64_t seed, std::uint64_t first,
                                       std::size_t count);

/// The constructed questions and some random ones, in an order in which every block of so many has
/// some of each kind.
std::vector<AskedDot> question_pool(const Ports&, std::uint64_t seed, std::size_t block);

}  // namespace numemu::oracle

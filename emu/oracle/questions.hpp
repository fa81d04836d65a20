// Dots whose results tell units apart: built for one aspect each, or random.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/dots.hpp"

namespace numemu::oracle {

struct Question {
  std::string aspect;  ///< "order", "kept bits", "tie", "subnormal", ...
  Dot dot;
};

/// Every question that the ports can express: masks that hide what is summed beside a large
/// product, sweeps of the distance of two numbers, ties, subnormals, zeros, infinities and NaN,
/// results at the ends of the range. Some hundreds.
std::vector<Question> constructed_questions(const Ports&);

/// Random dots of six kinds in turn: near 1, wide, any code, cancelling, small, large. Dot `first`
/// + i is a pure function of the seed and that number.
std::vector<Question> random_questions(const Ports&, std::uint64_t seed, std::uint64_t first,
                                       std::size_t count);

}  // namespace numemu::oracle

// Changes of codes that hardware and kernels make by mistake.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/oracle/layout.hpp"

namespace numemu::oracle {

/// The number of the other sign; a code without a sign as it is.
std::uint64_t negated(const Field&, std::uint64_t code);
/// The code with its sign bit 0.
std::uint64_t without_sign(const Field&, std::uint64_t code);
/// +0 in place of -0.
std::uint64_t plus_zero(const Field&, std::uint64_t code);

/// An order of the bits of a code that is not their own.
struct BitOrder {
  const char* name;  ///< "nibbles of the codes of {} swapped"
  std::uint64_t (*change)(std::uint64_t code, int bits);
};
/// Those that codes of so many bits can have.
std::vector<BitOrder> bit_orders(int bits);

}  // namespace numemu::oracle

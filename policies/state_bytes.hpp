// Numbers as byte strings, little-endian, for state that survives a restart.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/error.hpp"

namespace numemu::policies {

inline std::string to_bytes(const std::vector<std::uint64_t>& numbers) {
  std::string bytes;
  for (const std::uint64_t number : numbers) {
    for (int byte = 0; byte < 8; ++byte) bytes.push_back(static_cast<char>(number >> (8 * byte)));
  }
  return bytes;
}

/// The inverse; throws Error naming the state where the length is not a multiple of 8.
inline std::vector<std::uint64_t> from_bytes(const std::string& name, const std::string& bytes) {
  if (bytes.size() % 8 != 0) {
    throw Error("state " + name + ": expected a multiple of 8 bytes, found " +
                std::to_string(bytes.size()));
  }
  std::vector<std::uint64_t> numbers(bytes.size() / 8);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    numbers[i / 8] |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * (i % 8));
  return numbers;
}

inline std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
inline double double_of(std::uint64_t bits) { return std::bit_cast<double>(bits); }

}  // namespace numemu::policies

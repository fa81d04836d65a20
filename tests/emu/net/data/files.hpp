// Hostile files for the tests of loaders: compressed, big-endian, and the real data sets.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>

#include "tests/deflated.hpp"
#include "tests/files.hpp"

namespace numemu::net::test {

inline std::string gzip(const std::string& bytes) {
  return numemu::test::deflated(bytes, 1, 15 + 16);
}

inline std::string big_endian(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const std::uint32_t word : words) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 255);
  }
  return bytes;
}

/// The folder of the real data sets, "" where there is none.
inline std::string shared_data() {
  const char* variable = std::getenv("NUMEMU_SHARED");
  const std::string folder = std::string(variable != nullptr ? variable : NUMEMU_SHARED) + "/data";
  return std::filesystem::is_directory(folder) ? folder : "";
}

}  // namespace numemu::net::test

// A GGUF file of zeros, for tests that read one large matrix.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/files.hpp"

namespace numemu::test {

/// Its one tensor is w, float32 [rows, columns]; the zeros take no room on the disk.
inline void write_gguf_zeros(const std::string& path, std::int64_t rows, std::int64_t columns) {
  std::string bytes = "GGUF";
  const auto put = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(std::uint32_t{3});
  put(std::uint64_t{1});
  put(std::uint64_t{0});
  put(std::uint64_t{1});
  bytes += "w";
  put(std::uint32_t{2});
  put(static_cast<std::uint64_t>(columns));
  put(static_cast<std::uint64_t>(rows));
  put(std::uint32_t{0});
  put(std::uint64_t{0});
  write_file(path, bytes);
  std::filesystem::resize_file(path, 96 + static_cast<std::uintmax_t>(rows * columns * 4));
}

}  // namespace numemu::test

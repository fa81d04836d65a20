// Hostile files for the tests of loaders: compressed, big-endian, and the real data sets.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "tests/files.hpp"

namespace numemu::net::test {

using numemu::test::message_of;
using numemu::test::read_file;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
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

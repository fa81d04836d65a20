// Compressed bytes, for tests of what reads them.
#pragma once
#include <zlib.h>

#include <string>

namespace numemu::test {

/// By zlib at that level; `window` chooses between raw bytes (-15) and gzip (15 + 16).
inline std::string deflated(const std::string& bytes, int level, int window) {
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
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

}  // namespace numemu::test

// Temporary folders, hostile files and the message of an Error, for the tests of loaders.
#pragma once
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>

#include "formats/error.hpp"

namespace numemu::net::test {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "numemu-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Error(name + ": cannot create");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

/// The text of the Error that `action` throws, "" if it throws none. A message of two lines is
/// marked as such.
template <class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.find('\n') == std::string::npos ? text : "SEVERAL LINES: " + text;
  }
  return "";
}

/// The folder of the real data sets, "" where there is none.
inline std::string shared_data() {
  const char* variable = std::getenv("NUMEMU_SHARED");
  const std::string folder = std::string(variable != nullptr ? variable : NUMEMU_SHARED) + "/data";
  return std::filesystem::is_directory(folder) ? folder : "";
}

}  // namespace numemu::net::test

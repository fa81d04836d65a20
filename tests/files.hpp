// Temporary folders, files of bytes and the message of an Error, for tests of
// readers of files.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "formats/error.hpp"

namespace numemu::test {

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
  std::string bytes, part(std::size_t{1} << 16, '\0');
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0)
    bytes.append(part, 0, static_cast<std::size_t>(file.gcount()));
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

}  // namespace numemu::test

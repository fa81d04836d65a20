// Temporary folders, files of bytes and the message of an Error, for tests of
// readers of files.
#pragma once
#include <string>

#include "formats/error.hpp"

namespace numemu::test {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& bytes);

std::string read_file(const std::string& path);

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

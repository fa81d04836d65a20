// Writing a file so that a reader, or a crash, sees the old file or the new one and nothing
// between.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace numemu {

/// New contents of a file, written to a temporary file beside it and flushed to the disk; they take
/// the file's place with commit(), or are removed. Several can be made ready before the first is
/// committed. A link is followed: its target is replaced.
class PendingFile {
 public:
  /// The parts one after the other. Throws Error naming the file.
  PendingFile(const std::string& path, std::initializer_list<std::string_view> parts);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  /// Renames the temporary file, for good: also after a power cut. Throws Error naming the file;
  /// the temporary file is removed then.
  void commit();
  /// The same, before its folder is flushed to the disk: for files that go together.
  void take_place();
  /// Of the new contents, which are read again; before they take their place.
  std::string sha256() const;
  /// The file that is replaced, behind links.
  const std::string& target() const { return target_; }

 private:
  void discard();
  std::string path_, target_, temporary_;
  int file_ = -1;  ///< open, and locked, as long as the temporary file is there
};

/// PendingFile(path, parts).commit().
void write_atomically(const std::string& path, std::initializer_list<std::string_view> parts);

/// What a link to a file leads to; any other path as it is.
std::string linked_file(const std::string& path);

/// Throws Error unless `path` is a regular file, a link to one or a new name, in a folder where
/// files can be made: a rename would replace a device or a folder instead of writing to it. For
/// paths given by users, before the work.
void require_replaceable(const std::string& path);

}  // namespace numemu

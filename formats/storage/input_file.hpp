// A file that is read front to back; every failure names the file and the byte.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "formats/digest.hpp"

namespace numemu {

/// A regular file open for reading (a pipe or device has no size to check sizes against). Throws
/// Error naming the file.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Fills `count` bytes at `out`, without a buffer in between; the caller has compared `count`
  /// with left().
  void read(void* out, std::int64_t count);
  std::string read(std::int64_t count);
  /// read() from a byte of the file on, which holds as many; not while what is read is digested.
  void read_at(std::int64_t position, void* out, std::int64_t count) {
    position_ = position;
    read(out, count);
  }
  /// Passes over bytes; at most left().
  void skip(std::int64_t count);
  /// Back to the first byte. With `digested`, what is read or passed over from now on counts for
  /// sha256().
  void rewind(bool digested = false);
  /// Of the whole file, whose rest is read; after rewind(true).
  std::string sha256();
  std::int64_t position() const { return position_; }
  std::int64_t left() const { return size_ - position_; }
  const std::string& path() const { return path_; }
  /// Throws Error "PATH: byte POSITION: TEXT"; fail() takes the current position.
  [[noreturn]] void fail_at(std::int64_t position, const std::string& text) const;
  [[noreturn]] void fail(const std::string& text) const { fail_at(position_, text); }

 private:
  std::string path_;
  int file_ = -1;
  std::int64_t size_ = 0, position_ = 0;
  std::optional<Sha256> digest_;
};

/// Lower-case hexadecimal SHA-256 of a file.
std::string file_sha256(const std::string& path);

}  // namespace numemu

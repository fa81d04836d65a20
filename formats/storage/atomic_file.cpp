// POSIX calls: the standard library can neither create exclusively nor flush to the disk.
#include "formats/storage/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "formats/error.hpp"

namespace numemu {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw Error(path + ": cannot " + what + ": " + std::strerror(error));
}

/// A new file beside `path`, unique among processes and threads; a leftover of a killed process is
/// passed over.
int create_beside(const std::string& path, std::string& temporary) {
  static std::atomic<unsigned> next{0};
  while (true) {
    temporary = path + ".tmp" + std::to_string(getpid()) + "-" + std::to_string(next++);
    const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) return file;
    if (errno != EEXIST) fail(path, "create a temporary file beside it", errno);
  }
}

bool write_all(int file, std::string_view part) {
  while (!part.empty()) {
    const ssize_t written = write(file, part.data(), part.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    part.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// A rename lasts through a power cut only when its folder is flushed too; file systems that refuse
/// lose nothing else.
void flush_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

}  // namespace

void write_atomically(const std::string& path, std::initializer_list<std::string_view> parts) {
  std::string temporary;
  const int file = create_beside(path, temporary);
  bool written = true;
  for (const std::string_view part : parts) written = written && write_all(file, part);
  written = written && fsync(file) == 0;
  int error = written ? 0 : errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(temporary.c_str());
    fail(path, "write", error);
  }
  flush_folder_of(path);
}

void require_replaceable(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(path, error).type();
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    throw Error(path + ": expected a regular file or a new name");
}

}  // namespace numemu

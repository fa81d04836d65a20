// POSIX calls: the standard library can neither create exclusively nor flush to the disk.
#include "formats/storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/error.hpp"
#include "formats/storage/folders.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/leftovers.hpp"

namespace numemu {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw Error(path + ": cannot " + what + ": " + std::strerror(error));
}

/// The folder of a file that is to be written must be one.
void require_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  const auto type = std::filesystem::status(parent.empty() ? "." : parent, error).type();
  if (type == std::filesystem::file_type::not_found)
    throw Error(parent.string() + ": no such folder");
  // What a look is refused to is left to the system's own words.
  if (type != std::filesystem::file_type::directory && type != std::filesystem::file_type::none &&
      type != std::filesystem::file_type::unknown)
    throw Error(parent.string() + " is not a folder");
}

struct Temporary {
  std::string name;
  int file = -1;
};

/// A new file that nobody else has, where the file system cannot lock; a leftover of a killed
/// process stays.
Temporary create_unlocked(const std::string& path) {
  static std::atomic<unsigned> next{0};
  while (true) {
    std::string name = path + ".tmp" + std::to_string(getpid()) + "-" + std::to_string(next++);
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) return {std::move(name), file};
    if (errno != EEXIST) fail(path, "create a temporary file beside it", errno);
  }
}

/// An empty, locked file beside `path`. Names are few and fixed, and a lock ends with its process,
/// so the next run takes what a killed one left; the lock keeps others, threads too, apart.
Temporary create_beside(const std::string& path) {
  for (unsigned i = 0;; ++i) {
    std::string name = path + kTemporaryMark + std::to_string(i);
    const int file =
        open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) continue;
    if (file < 0) {
      const int error = errno;
      require_folder_of(path);
      fail(path, "create a temporary file beside it", error);
    }
    const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    const int error = errno;
    if (locked && still_named(file, name) && ftruncate(file, 0) == 0)
      return {std::move(name), file};
    close(file);
    if (locked || error == EWOULDBLOCK || error == EINTR) continue;
    unlink(name.c_str());
    return create_unlocked(path);
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

}  // namespace

PendingFile::PendingFile(const std::string& path, std::initializer_list<std::string_view> parts)
    : path_(path), target_(linked_file(path)) {
  Temporary created = create_beside(target_);
  temporary_ = std::move(created.name);
  file_ = created.file;
  bool written = true;
  for (const std::string_view part : parts) written = written && write_all(file_, part);
  if (written && fsync(file_) == 0) return;
  const int error = errno;
  discard();
  fail(path_, "write", error);
}

PendingFile::~PendingFile() { discard(); }

void PendingFile::discard() {
  if (file_ < 0) return;
  unlink(temporary_.c_str());
  close(file_);
  file_ = -1;
}

void PendingFile::commit() {
  take_place();
  Folders({target_}).flush();
}

std::string PendingFile::sha256() const {
  InputFile file(temporary_);
  file.rewind(true);
  return file.sha256();
}

void PendingFile::take_place() {
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    discard();
    fail(path_, "write", error);
  }
  // Flushed before: closing has nothing left to write.
  close(file_);
  file_ = -1;
}

void write_atomically(const std::string& path, std::initializer_list<std::string_view> parts) {
  PendingFile(path, parts).commit();
}

std::string linked_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

void require_replaceable(const std::string& path) {
  require_folder_of(path);
  std::error_code error;
  const auto named = std::filesystem::symlink_status(path, error).type();
  // Another run may take the file away at any time: a second look is for links alone.
  const auto type = named == std::filesystem::file_type::symlink
                        ? std::filesystem::status(path, error).type()
                        : named;
  // A link to nothing is no new name: a rename would replace the link. What /dev and /proc link to
  // are open files, which a rename would detach from the processes that have them open.
  const bool is_new = named == std::filesystem::file_type::not_found;
  const bool is_open_file = named == std::filesystem::file_type::symlink &&
                            (path.starts_with("/dev/") || path.starts_with("/proc/"));
  if (is_open_file || (!is_new && type != std::filesystem::file_type::regular))
    throw Error(path + ": expected a regular file or a new name");
  const std::filesystem::path folder = std::filesystem::path(linked_file(path)).parent_path();
  const char* const where = folder.empty() ? "." : folder.c_str();
  if (::faccessat(AT_FDCWD, where, W_OK | X_OK, AT_EACCESS) != 0)
    fail(path, "create a temporary file beside it", errno);
}

}  // namespace numemu

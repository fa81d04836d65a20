// POSIX calls: the standard library can neither create exclusively nor flush to the disk. Locks are
// taken on the folders themselves: a file of its own would stay behind; a lock ends with its
// process, so a temporary file that can be locked has no living writer.
#include "formats/storage/atomic_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/file_lock.hpp"

namespace numemu {

Folders::Folders(const std::vector<std::string>& files) {
  // In one order for everybody, so that two runs never wait for each other.
  std::map<std::pair<dev_t, ino_t>, int> folders;
  for (const std::string& file : files) {
    const std::size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
    const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) continue;
    struct stat status;
    if (fstat(handle, &status) != 0 ||
        !folders.emplace(std::pair{status.st_dev, status.st_ino}, handle).second)
      close(handle);
  }
  for (const auto& [identity, handle] : folders) handles_.push_back(handle);
}

Folders::~Folders() {
  for (const int handle : handles_) close(handle);
}

void Folders::lock(bool alone) {
  // `flock FOLDER numemu ...` holds the lock until this process ends.
  constexpr int kTries = 2000;
  constexpr useconds_t kPause = 1000;
  for (const int handle : handles_) {
    for (int i = 0; i < kTries; ++i) {
      if (flock(handle, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) break;
      if (errno != EWOULDBLOCK && errno != EINTR) break;
      usleep(kPause);
    }
  }
}

void Folders::flush() {
  for (const int handle : handles_) flock(handle, LOCK_UN);  // flushing can take long
  for (const int handle : handles_) fsync(handle);
}

bool still_named(int file, int folder, const std::string& name) {
  struct stat opened, named;
  return fstat(file, &opened) == 0 &&
         fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(named.st_mode) && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void remove_leftovers(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().find(kTemporaryMark) != std::string::npos)
      found.push_back(at->path().string());
  }
  for (const std::string& path : found) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && still_named(file, AT_FDCWD, path))
      unlink(path.c_str());
    close(file);
  }
}

namespace {

constexpr int kMostLinks = 40;  // as the system follows

/// A descriptor that ends with its block.
struct Open {
  explicit Open(int opened) : file(opened) {}
  ~Open() {
    if (file >= 0) close(file);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  const int file;
};

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

[[noreturn]] void fail_to_open(const std::string& folder, int error) {
  if (error == ENOENT) throw file_error(folder + ": no such folder");
  if (error == ENOTDIR) throw file_error(folder + " is not a folder");
  throw file_error(folder + ": cannot be opened: " + std::strerror(error));
}

std::string link_text(int link, const std::string& path) {
  char text[PATH_MAX];
  const ssize_t size = readlinkat(link, "", text, sizeof text);
  if (size <= 0) throw file_error(path + ": cannot read the link: " + std::strerror(errno));
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

OutputPlace::OutputPlace(const std::string& path) : path_(path), target_(path) {
  try {
    for (int links = 0; follow(); ++links) {
      if (links == kMostLinks) refuse();
    }
    require_replaceable();
    struct stat status;
    // A link to nothing is no new name: a rename would replace the link.
    if (target_ != path_ && fstatat(folder_, name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      refuse();
  } catch (...) {
    if (folder_ >= 0) close(folder_);
    throw;
  }
}

OutputPlace::~OutputPlace() { close(folder_); }

bool OutputPlace::follow() {
  if (folder_ >= 0) close(folder_);
  const std::string parent = folder_of(target_);
  folder_ = open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) fail_to_open(parent, errno);
  name_ = std::filesystem::path(target_).filename().string();
  if (name_.empty() || name_ == "." || name_ == "..") refuse();
  const Open named(openat(folder_, name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (named.file < 0 || fstat(named.file, &status) != 0 || !S_ISLNK(status.st_mode)) return false;
  struct statfs system;
  if (fstatfs(named.file, &system) != 0 || system.f_type == PROC_SUPER_MAGIC) refuse();
  const std::filesystem::path link = link_text(named.file, path_);
  target_ = (link.is_absolute() ? link : std::filesystem::path(parent) / link).string();
  return true;
}

void OutputPlace::require_replaceable() const {
  struct stat status;
  if (fstatat(folder_, name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return;
    throw file_error(path_ + ": cannot be looked at: " + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) refuse();
}

void OutputPlace::refuse() const {
  throw file_error(path_ + ": expected a regular file or a new name");
}

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw file_error(path + ": cannot " + what + ": " + std::strerror(error));
}

struct Temporary {
  std::string name;
  int file = -1;
};

/// A new file that nobody else has, on any machine, where locks do not hold; a leftover of a killed
/// process stays.
Temporary create_unlocked(const OutputPlace& place) {
  static std::atomic<unsigned> next{0};
  while (true) {
    std::string name =
        place.name() + ".tmp" + std::to_string(getpid()) + "-" + std::to_string(next++);
    const int file =
        openat(place.folder(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) return {std::move(name), file};
    if (errno != EEXIST) fail(place.path(), "create a temporary file beside it", errno);
  }
}

/// An empty, locked file in the folder of the place. Names are few and fixed, and a lock ends with
/// its process, so the next run takes what a killed one left; the lock keeps others, threads too,
/// apart.
Temporary create_beside(const OutputPlace& place) {
  if (!locks_hold(place.folder())) return create_unlocked(place);
  for (unsigned i = 0;; ++i) {
    std::string name = place.name() + kTemporaryMark + std::to_string(i);
    const int file = openat(place.folder(), name.c_str(),
                            O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) continue;
    if (file < 0) fail(place.path(), "create a temporary file beside it", errno);
    const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    const int error = errno;
    if (locked && still_named(file, place.folder(), name) && ftruncate(file, 0) == 0)
      return {std::move(name), file};
    close(file);
    if (locked || error == EWOULDBLOCK || error == EINTR) continue;
    unlinkat(place.folder(), name.c_str(), 0);
    return create_unlocked(place);
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

PendingFile::PendingFile(const std::string& path, const std::function<void(const Write&)>& fill)
    : place_(path) {
  Temporary created = create_beside(place_);
  temporary_ = std::move(created.name);
  file_ = created.file;
  try {
    fill([&](std::string_view part) {
      if (!write_all(file_, part)) fail(path, "write", errno);
    });
    if (fsync(file_) != 0) fail(path, "write", errno);
  } catch (...) {
    discard();
    throw;
  }
}

PendingFile::PendingFile(const std::string& path, std::initializer_list<std::string_view> parts)
    : PendingFile(path, [&](const Write& write) {
        for (const std::string_view part : parts) write(part);
      }) {}

PendingFile::~PendingFile() { discard(); }

void PendingFile::discard() {
  if (file_ < 0) return;
  unlinkat(place_.folder(), temporary_.c_str(), 0);
  close(file_);
  file_ = -1;
}

void PendingFile::commit() {
  take_place();
  Folders({target()}).flush();
}

std::string PendingFile::sha256() const {
  Sha256 digest;
  std::vector<char> part(std::size_t{1} << 18);
  for (off_t at = 0;;) {
    const ssize_t got = pread(file_, part.data(), part.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(place_.path(), "read", errno);
    if (got == 0) return digest.hex();
    digest.add(part.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

void PendingFile::remove_old() const {
  place_.require_replaceable();
  if (unlinkat(place_.folder(), place_.name().c_str(), 0) != 0 && errno != ENOENT)
    fail(place_.path(), "replace", errno);
}

void PendingFile::take_place() {
  place_.require_replaceable();
  const int folder = place_.folder();
  if (renameat(folder, temporary_.c_str(), folder, place_.name().c_str()) != 0) {
    const int error = errno;
    discard();
    fail(place_.path(), "write", error);
  }
  // Flushed before: closing has nothing left to write.
  close(file_);
  file_ = -1;
}

void write_atomically(const std::string& path, std::initializer_list<std::string_view> parts) {
  PendingFile(path, parts).commit();
}

void append_text(const std::string& path, std::string_view text, bool flush) {
  // O_NONBLOCK: opening a pipe must not wait for its reader before it is refused.
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0 && errno != ENXIO) fail(path, "write", errno);
  struct stat status;
  const bool regular = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const bool written =
      regular && write_all(file, text) && (!flush || fsync(file) == 0 || errno == EINVAL);
  const int error = errno;
  if (file >= 0) close(file);
  if (!regular) throw file_error(path + ": expected a regular file or a new name");
  if (!written) fail(path, "write", error);
}

std::string linked_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

void require_replaceable(const std::string& path) {
  const OutputPlace place(path);
  if (::faccessat(place.folder(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    fail(path, "create a temporary file beside it", errno);
}

}  // namespace numemu

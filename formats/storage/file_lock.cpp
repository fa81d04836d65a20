// POSIX calls: the standard library neither locks files nor refuses to follow links.
#include "formats/storage/file_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>

#include "formats/error.hpp"

namespace numemu {
namespace {

// A note has this many bytes, so that the next one covers it: the file is never cut.
constexpr std::size_t kNoteBytes = 12;

/// The number in an open lock file, 0 in an empty one; nullopt for a file of anything else, which
/// is not ours. A file with a second name may belong to another program.
std::optional<int> note_of(int file) {
  struct stat status;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1 ||
      status.st_size > static_cast<off_t>(kNoteBytes))
    return std::nullopt;
  char text[kNoteBytes];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  if (size < 0) return std::nullopt;
  if (size == 0) return 0;
  std::string_view digits(text, static_cast<std::size_t>(size));
  if (digits.back() == '\n') digits.remove_suffix(1);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  int number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && at == end && number > 0 ? std::optional(number) : std::nullopt;
}

[[noreturn]] void refuse(int file, const std::string& message) {
  if (file >= 0) ::close(file);
  throw Error(message);
}

int open_lock(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its reader before it is refused.
  const int file =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (file < 0 && errno == ELOOP)
    refuse(file, path + ": expected a lock file, found a symbolic link; remove it");
  if (file < 0)
    refuse(file, fmt::format("{}: cannot be opened for writing ({})", path, std::strerror(errno)));
  return file;
}

void require_lock_file(int file, const std::string& path) {
  if (!note_of(file))
    refuse(file, path + ": expected a lock file, which is empty or holds a number; move it away");
}

// Of statfs(2), where the kernel's headers lack them.
constexpr std::uint32_t kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e, kJfs = 0x3153464a;

}  // namespace

bool locks_hold(int file) {
  constexpr std::uint32_t kOfOneMachine[] = {EXT4_SUPER_MAGIC,
                                             XFS_SUPER_MAGIC,
                                             BTRFS_SUPER_MAGIC,
                                             F2FS_SUPER_MAGIC,
                                             TMPFS_MAGIC,
                                             RAMFS_MAGIC,
                                             OVERLAYFS_SUPER_MAGIC,
                                             REISERFS_SUPER_MAGIC,
                                             NILFS_SUPER_MAGIC,
                                             ECRYPTFS_SUPER_MAGIC,
                                             MSDOS_SUPER_MAGIC,
                                             kZfs,
                                             kBcachefs,
                                             kJfs};
  struct statfs system;
  return ::fstatfs(file, &system) == 0 &&
         std::ranges::find(kOfOneMachine, static_cast<std::uint32_t>(system.f_type)) !=
             std::end(kOfOneMachine);
}

FileLock::FileLock(const std::string& path, const std::string& busy) : file_(open_lock(path)) {
  if (locks_hold(file_) && ::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    refuse(file_, error == EWOULDBLOCK
                      ? busy
                      : fmt::format("{}: cannot be locked ({})", path, std::strerror(error)));
  }
  require_lock_file(file_, path);
}

FileLock::~FileLock() { ::close(file_); }

void note_number(const std::string& path, int number) {
  const int file = open_lock(path);
  require_lock_file(file, path);
  const std::string text = fmt::format("{:{}}\n", number, kNoteBytes - 1);
  std::ignore = ::pwrite(file, text.data(), text.size(), 0);
  ::close(file);
}

int noted_number(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return 0;
  const std::optional<int> number = note_of(file);
  ::close(file);
  return number.value_or(0);
}

}  // namespace numemu

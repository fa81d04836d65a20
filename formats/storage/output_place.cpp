// POSIX calls relative to descriptors: the standard library names files by path alone.
#include "formats/storage/output_place.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "formats/error.hpp"

namespace numemu {
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
  if (error == ENOENT) throw Error(folder + ": no such folder");
  if (error == ENOTDIR) throw Error(folder + " is not a folder");
  throw Error(folder + ": cannot be opened: " + std::strerror(error));
}

std::string link_text(int link, const std::string& path) {
  char text[PATH_MAX];
  const ssize_t size = readlinkat(link, "", text, sizeof text);
  if (size <= 0) throw Error(path + ": cannot read the link: " + std::strerror(errno));
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
    throw Error(path_ + ": cannot be looked at: " + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) refuse();
}

void OutputPlace::refuse() const { throw Error(path_ + ": expected a regular file or a new name"); }

}  // namespace numemu

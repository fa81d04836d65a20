// A lock ends with its process, so a file that can be locked has no living writer.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/leftovers.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace numemu {

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

}  // namespace numemu

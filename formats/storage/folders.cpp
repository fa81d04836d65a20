// Locks are taken on the folders themselves: a file of its own would stay behind.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/folders.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>

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

}  // namespace numemu

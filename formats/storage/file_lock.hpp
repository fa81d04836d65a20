// A lock that ends with its process: what keeps two runs from writing to one place.
#pragma once
#include <string>

namespace numemu {

/// An exclusive lock on a file made for it alone. The file stays; its contents are nothing, or a
/// number that the holder noted. A link is not followed, and nothing that the file holds is lost.
class FileLock {
 public:
  /// Creates `path` where it is not there. Throws Error "BUSY" where another holds the lock, Error
  /// naming the file for a link, for anything but a regular file, and where its contents are no
  /// lock's.
  FileLock(const std::string& path, const std::string& busy);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  /// Leaves a number for noted_number; a note that is lost costs only a check.
  void note(int number);

 private:
  int file_;
};

/// The number noted in a lock file; 0 where there is none.
int noted_number(const std::string& path);

}  // namespace numemu

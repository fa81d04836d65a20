// A lock that ends with its process: what keeps two runs from writing to one place.
#pragma once
#include <string>

namespace numemu {

/// Whether locks of an open file end with their process, as those of a machine's own file systems
/// do. On one that machines share (NFS, Lustre, FUSE ...) the lock of a machine that died may stay,
/// machines may not see each other's, or there are none: nothing may rest on them there.
bool locks_hold(int file);

/// An exclusive lock on a file made for it alone, taken where locks hold. The file stays; its
/// contents are nothing, or a number that was noted. A link is not followed, and nothing that the
/// file holds is lost.
class FileLock {
 public:
  /// Creates `path` where it is not there. Throws Error "BUSY" where another holds the lock, Error
  /// naming the file for a link, for anything but a regular file, and where its contents are no
  /// lock's.
  FileLock(const std::string& path, const std::string& busy);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// Leaves a number in a lock file, locked or not; a note that is lost costs only a check. Throws
/// Error as FileLock does for a link and for contents that are no lock's.
void note_number(const std::string& path, int number);
/// The number noted in a lock file; 0 where there is none.
int noted_number(const std::string& path);

}  // namespace numemu

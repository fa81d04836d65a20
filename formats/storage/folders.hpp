// The folders of files that belong together: locked while such files change places, and flushed.
#pragma once
#include <string>
#include <vector>

namespace numemu {

/// Opens the folders of the files; one that cannot be opened is passed over. Locks end with the
/// object, or with the process.
class Folders {
 public:
  explicit Folders(const std::vector<std::string>& files);
  ~Folders();
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;

  /// Waits until no other run is putting files into these folders (`alone`: nor taking files from
  /// them). A folder that cannot be locked (some network file systems), or that another process
  /// locks for two seconds, is used without a lock: digests in sidecars still identify what
  /// belongs together.
  void lock(bool alone);
  /// Ends the lock. A rename lasts through a power cut only when its folder is flushed too; file
  /// systems that refuse lose nothing else.
  void flush();

 private:
  std::vector<int> handles_;
};

}  // namespace numemu

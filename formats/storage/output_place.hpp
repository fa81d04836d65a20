// Where an output file is to stand: a name in an open folder, so that no later change of a path
// leads elsewhere.
#pragma once
#include <string>

namespace numemu {

/// The place of `path`. A link to a regular file is followed: its target is what is replaced.
/// Throws Error naming the path unless a regular file or nothing is there: a rename would put a
/// file in the place of a device, a pipe or a folder. A link to nothing is no new name, and what
/// /proc links to are open files, also behind /dev/stdout.
class OutputPlace {
 public:
  explicit OutputPlace(const std::string& path);
  ~OutputPlace();
  OutputPlace(const OutputPlace&) = delete;
  OutputPlace& operator=(const OutputPlace&) = delete;

  /// As given, for messages.
  const std::string& path() const { return path_; }
  /// The same behind links; its folder is open as folder().
  const std::string& target() const { return target_; }
  int folder() const { return folder_; }
  const std::string& name() const { return name_; }
  /// Throws Error unless a regular file or nothing is there by now. A rename right behind it still
  /// replaces a link or a device that another process puts there in between (microseconds): Linux
  /// has no rename onto regular files alone. renameat2 with RENAME_EXCHANGE could undo it, but not
  /// on every file system, and the temporary name would be another file's for a moment.
  void require_replaceable() const;

 private:
  /// Opens the folder of target_ and the name in it, which is followed if it is a link.
  bool follow();
  [[noreturn]] void refuse() const;
  std::string path_, target_, name_;
  int folder_ = -1;
};

}  // namespace numemu

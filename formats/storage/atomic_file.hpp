// Files that take the place of others in one step: a reader, or a crash, sees the old file or the
// new one. Their folders, and what a killed writer left in them.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
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

/// Stands between the name of a file and the number of a temporary one beside it.
inline constexpr const char* kTemporaryMark = ".numemu-tmp";

/// Whether `name` in an open folder still leads to the open file, which nobody but the holder of
/// its lock may rename.
bool still_named(int file, int folder, const std::string& name);

/// Removes the temporary files in a folder that no process is writing. A folder or file that cannot
/// be read is passed over.
void remove_leftovers(const std::string& folder);

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
  /// The path behind links; its folder is open as folder().
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

/// New contents of a file, written to a temporary file beside it and flushed to the disk; they take
/// the file's place with commit(), or are removed. Several can be made ready before the first is
/// committed. A link to a regular file is followed: its target is replaced. Anything else than a
/// regular file or nothing is refused (OutputPlace), when the temporary file is made and again when
/// it takes the place.
class PendingFile {
 public:
  /// What `fill` writes, one part after the other. Throws Error naming the file.
  using Write = std::function<void(std::string_view part)>;
  PendingFile(const std::string& path, const std::function<void(const Write&)>& fill);
  /// The parts one after the other.
  PendingFile(const std::string& path, std::initializer_list<std::string_view> parts);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  /// Renames the temporary file, for good: also after a power cut. Throws Error naming the file;
  /// the temporary file is removed then.
  void commit();
  /// commit() before its folder is flushed to the disk: for files that go together.
  void take_place();
  /// Of the new contents, which are read again; before they take their place.
  std::string sha256() const;
  /// Removes the file that is to be replaced, if there is one.
  void remove_old() const;
  /// The file that is replaced, behind links.
  const std::string& target() const { return place_.target(); }

 private:
  void discard();
  OutputPlace place_;
  std::string temporary_;  ///< in the folder of the place
  int file_ = -1;          ///< open, and locked, as long as the temporary file is there
};

/// PendingFile(path, parts).commit().
void write_atomically(const std::string& path, std::initializer_list<std::string_view> parts);

/// Adds to the end of a regular file, or of a new one; `flush`: for good, also after a power cut.
/// Throws Error naming the file.
void append_text(const std::string& path, std::string_view text, bool flush = false);

/// What a link to a file leads to; any other path as it is.
std::string linked_file(const std::string& path);

/// Throws Error unless an OutputPlace can be made of `path`, in a folder where files can be made.
/// For paths given by users, before the work.
void require_replaceable(const std::string& path);

}  // namespace numemu

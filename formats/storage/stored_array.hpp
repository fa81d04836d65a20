// Files of arrays as a reader takes them: opened with their sidecars, all of one moment, and held
// against the digests that the sidecars have of them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/storage/array.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu {

/// A file that is to be read, and what it is to the others: one of kSidecarRoles.
struct ArrayName {
  std::string path;  ///< empty: no file
  std::string role = "codes";
};

/// An open file, at its beginning, and its sidecar if there is one.
struct StoredArray {
  /// What the file must hold: a digest that a sidecar has of it.
  struct Expected {
    std::string sha256, sidecar;
    bool own = true;  ///< the sidecar is the file's; else that of a file it was written with
  };
  std::unique_ptr<InputFile> file;  ///< null where the name was empty
  std::optional<Sidecar> sidecar;
  std::vector<Expected> expected;

  const std::string& path() const { return file->path(); }
  /// To the first byte, before the file is read (again).
  void rewind() { file->rewind(!expected.empty()); }
  /// After it was read. Throws Error naming the sidecar whose digest is another, and the way out.
  void check_digest();
};

/// Opens files that belong together. A run that writes them (OutputFiles) comes before or after,
/// not in between. Throws Error as InputFile and read_sidecar() do.
std::vector<StoredArray> open_together(const std::vector<ArrayName>&);
/// One file.
StoredArray open_stored(const std::string& path);

/// The .npy array of the file, checked.
Array read_array(StoredArray&);

}  // namespace numemu

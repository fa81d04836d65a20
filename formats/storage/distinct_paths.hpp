// One run must not write two things to one file, nor over something it still has to read.
#pragma once
#include <string>
#include <vector>

namespace numemu {

/// A file as a user names it. Empty paths and "-" are no files and are passed over.
struct NamedPath {
  std::string option;  ///< "--flags"
  std::string path;
  /// A sidecar PATH.json belongs to the file: it is read with it, or written or removed with it.
  bool sidecar = true;
  /// An input that is read whole before `--out` is written, which may take its place.
  bool replaceable = false;
};

/// Throws Error "--out and --flags: expected two files, found a.npy twice" where two outputs, or an
/// output and an input, or the sidecar of either, are one file, also through links and other
/// spellings.
void require_distinct_paths(const std::vector<NamedPath>& outputs,
                            const std::vector<NamedPath>& inputs = {});

}  // namespace numemu

// `numemu verify FOLDER`: recorded answers of GPUs held against the units of their chips.
#pragma once
#include <string>

namespace numemu::cli {

struct FolderOptions {
  std::string folder;
  std::string unit;  ///< in place of the units of the chips
  std::string only;  ///< part of kind, instruction or file
  std::string junit;
  bool hashes = false, json = false;
};

/// Prints the report and returns the exit code. Throws Error naming file and line.
int verify_folder(const FolderOptions&);

/// Whether the path is a folder.
bool is_folder(const std::string& path);

}  // namespace numemu::cli

// The records of a run beside the results of the emulator's units.
#pragma once
#include <string>
#include <vector>

namespace numemu::oracle::recording {

/// One file of records compared.
struct ComparedFile {
  std::string file, unit;  ///< unit "": the emulator has none
  int records = 0, mismatches = 0;
  int zero_signs = 0;  ///< of the mismatches: only the sign of a zero differs
  std::string first;   ///< mismatch in words
};

/// Every file of FOLDER/index.tsv, through the reference and the fast path. Throws
/// std::runtime_error on a bad file.
std::vector<ComparedFile> compare_folder(const std::string& folder);

}  // namespace numemu::oracle::recording

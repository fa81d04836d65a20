// The vectors of data/vectors/emr: instructions run on an Emerald Rapids Xeon.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "tests/oracle/mma/golden_batch.hpp"

namespace numemu::oracle::mma {

/// A file of records A[m][k] B[k][n] C[m][n] D[m][n].
struct SiliconFile {
  std::string_view file, unit;
  std::string_view a, b, result;  ///< formats; "" for int32
  std::int64_t m = 1, n = 1, k = 0;
};

/// Every file but the conversions of vcvtneps2bf16.bin.
std::span<const SiliconFile> silicon_files();
std::string silicon_folder();
/// Throws Error when the file does not hold whole records.
Batch read_silicon(const SiliconFile&);

}  // namespace numemu::oracle::mma

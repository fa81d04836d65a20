// The vectors of data/vectors: instructions run on an Emerald Rapids Xeon, and in QEMU.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "tests/oracle/mma/golden_batch.hpp"

namespace numemu::oracle::mma {

/// A file of records A[m][k] B[k][n] (or [n][k]) C[m][n] D[m][n].
struct SiliconFile {
  std::string_view file, unit;
  std::string_view a, b, result;  ///< formats; "" for int32
  std::int64_t m = 1, n = 1, k = 0;
  bool b_is_n_by_k = false;
};

/// Every file but the conversions of vcvtneps2bf16.bin.
std::span<const SiliconFile> silicon_files();
std::string silicon_folder();
/// Instructions of Arm by qemu-aarch64.
std::span<const SiliconFile> emulated_files();
std::string emulated_folder();
/// The shape of the file's records, without any.
Batch batch_of(const SiliconFile&);
/// Throws Error when the file does not hold whole records.
Batch read_recorded(const SiliconFile&, const std::string& folder);

}  // namespace numemu::oracle::mma

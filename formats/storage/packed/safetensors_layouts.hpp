// Tensors of safetensors files that several stored ones make up: which belong together, and in
// which layout.
#pragma once
#include <string>
#include <vector>

#include "formats/storage/packed/layout.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu {

/// The header of an open file, by name.
class SafetensorsNames {
 public:
  /// `data` is the file's byte at which the data begin.
  SafetensorsNames(std::string path, std::int64_t data, const SafetensorsHeader& header);

  const std::string& path() const { return path_; }
  /// The file's byte at which an entry begins.
  std::int64_t begin(const SafetensorsEntry& entry) const { return data_ + entry.begin; }
  /// Null where there is none.
  const SafetensorsEntry* find(const std::string& name) const;
  /// Throws Error naming the tensor that it belongs to, where there is none.
  const SafetensorsEntry& at(const std::string& name, const std::string& whole) const;

 private:
  std::string path_;
  std::int64_t data_;
  std::vector<const SafetensorsEntry*> sorted_;
};

/// A tensor as its users see it, by the stored one that has its codes.
struct PackedGroup {
  std::string name;                      ///< "fc1.weight" of "fc1.qweight"
  const SafetensorsEntry* codes;         ///< never null
  const PackedLayout* layout = nullptr;  ///< as names, types and shapes say it; null: none fits
};

/// All of a file, in its order. Scales, zero points and what else belongs to codes are no tensors
/// of their own; scales of activations and caches are left out.
std::vector<PackedGroup> packed_groups(const SafetensorsNames&, const SafetensorsHeader&);

/// The tensor, in a layout that may be another than the group's. Throws Error naming the file, the
/// stored tensor and what does not fit.
PackedTensor open_packed(const SafetensorsNames&, const PackedGroup&, const PackedLayout&);

}  // namespace numemu

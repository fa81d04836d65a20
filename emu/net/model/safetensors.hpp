// Checkpoints as safetensors: 8-byte header length, JSON header, raw little-endian tensors.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/data/stored_type.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// A byte string, stored as a vector of U8.
struct NamedBytes {
  std::string name, data;
};

struct Checkpoint {
  std::vector<NamedTensor> tensors;  ///< in file order
  std::vector<std::pair<std::string, std::string>> metadata =
      {};                              ///< the header's __metadata__, sorted by key
  std::vector<NamedBytes> bytes = {};  ///< after the tensors
};

/// Writes atomically (a temporary file renamed). f16 and bf16 round to nearest even; a value beyond
/// their range is an Error.
void write_safetensors(const std::string& path, const Checkpoint&, StorageType = StorageType::f32);
/// Reads F32, F16 and BF16 tensors, with `bytes` also U8 (of any shape, as one string). With
/// `codes`, where the metadata has `parameters`, a tensor with NAME_format there is read as the
/// numbers that its codes are; it must have that format's type (code_type()). Hostile input: sizes
/// are checked before allocating; throws Error naming file and offset.
Checkpoint read_safetensors(const std::string& path, bool bytes = false, bool codes = false);
/// read_safetensors() of the tensors that are `wanted` by name, without memory for the others; of
/// all where that is empty.
Checkpoint read_safetensors_part(const std::string& path, bool bytes, bool codes,
                                 const std::function<bool(std::string_view name)>& wanted);

/// The value of a key of a file's metadata, which is sorted by key; nullptr without.
const std::string* sorted_metadata_of(const Checkpoint&, const std::string& key);

}  // namespace numemu::net

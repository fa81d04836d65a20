// Element types of checkpoints: float32 unchanged, float16 and bfloat16 rounded by the codec of
// formats/.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

enum class StorageType { f32, f16, bf16 };

/// A stored type by its safetensors name.
struct StoredType {
  StorageType type;
  std::string_view name;    ///< "F32"
  std::string_view format;  ///< the row of formats.def
  std::int64_t bytes;       ///< of one element
};

const StoredType& stored_type(StorageType);
/// nullptr for a type that is not read.
const StoredType* stored_type(std::string_view name);

/// Appends the elements to `bytes`, rounded to nearest even. Returns the index of the first finite
/// value whose rounded magnitude is beyond the type's largest, -1 if there is none.
std::int64_t store(const StoredType&, std::span<const float> values, std::string& bytes);
/// Reads values.size() elements from `bytes`.
void load(const StoredType&, std::string_view bytes, std::span<float> values);

}  // namespace numemu::net

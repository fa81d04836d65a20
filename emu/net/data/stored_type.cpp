// Conversions through the reference codec, so that no flag of the host takes part.
#include "emu/net/data/stored_type.hpp"

#include <array>
#include <cstring>

#include "formats/codec.hpp"

namespace numemu::net {
namespace {

static_assert(std::endian::native == std::endian::little, "stored elements are copied as they are");

constexpr std::array<StoredType, 3> kTypes = {{
    {StorageType::f32, "F32", "float32", 4},
    {StorageType::f16, "F16", "float16", 2},
    {StorageType::bf16, "BF16", "bfloat16", 2},
}};

/// Every value of a 16-bit type, by its code.
const std::vector<float>& values_of(const StoredType& type) {
  const auto all = [](std::string_view name) {
    std::vector<float> values(std::size_t{1} << 16);
    for (std::size_t code = 0; code < values.size(); ++code)
      values[code] = nearest_float(decode(find_format(name), code));
    return values;
  };
  static const std::vector<float> half = all("float16"), brain = all("bfloat16");
  return type.type == StorageType::f16 ? half : brain;
}

}  // namespace

const StoredType& stored_type(StorageType type) { return kTypes[static_cast<std::size_t>(type)]; }

const StoredType* stored_type(std::string_view name) {
  for (const StoredType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::int64_t store(const StoredType& type, std::span<const float> values, std::string& bytes) {
  const std::size_t start = bytes.size(), count = values.size();
  bytes.resize(start + count * type.bytes);
  if (type.type == StorageType::f32) {
    if (count > 0) std::memcpy(bytes.data() + start, values.data(), count * sizeof(float));
    return -1;
  }
  const Format& format = find_format(type.format);
  for (std::size_t i = 0; i < count; ++i) {
    const Value value = value_of(values[i]);
    const Encoded result = encode(format, value, {}, Overflow::ieee);
    if (value.kind == Class::finite && (result.flags & kOverflow) != 0)
      return static_cast<std::int64_t>(i);
    const auto code = static_cast<std::uint16_t>(result.code);
    std::memcpy(bytes.data() + start + i * sizeof code, &code, sizeof code);
  }
  return -1;
}

void load(const StoredType& type, std::string_view bytes, std::span<float> values) {
  if (type.type == StorageType::f32) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return;
  }
  const std::vector<float>& table = values_of(type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t code;
    std::memcpy(&code, bytes.data() + i * sizeof code, sizeof code);
    values[i] = table[code];
  }
}

}  // namespace numemu::net

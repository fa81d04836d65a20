// One table; the names are those of the reference implementation.
#include "formats/storage/safetensors_type.hpp"

#include <array>

namespace numemu {
namespace {

/// The dtypes of safetensors 0.6 (Dtype in safetensors/src/tensor.rs). F8_E4M3 is the OCP format
/// without infinities; F4 is E2M1, low nibble first.
constexpr std::array<SafetensorsType, 22> kTypes = {{
    {"F4", 4, "float4_e2m1fn"},
    {"F6_E2M3", 6, "float6_e2m3fn"},
    {"F6_E3M2", 6, "float6_e3m2fn"},
    {"F8_E5M2", 8, "float8_e5m2"},
    {"F8_E4M3", 8, "float8_e4m3fn"},
    {"F8_E8M0", 8, "float8_e8m0fnu"},
    {"F8_E4M3FNUZ", 8, "float8_e4m3fnuz"},
    {"F8_E5M2FNUZ", 8, "float8_e5m2fnuz"},
    {"I8", 8, "int8"},
    {"U8", 8, "uint8"},
    {"F16", 16, "float16"},
    {"BF16", 16, "bfloat16"},
    {"F32", 32, "float32"},
    {"F64", 64, "float64"},
    {"BOOL", 8, ""},
    {"I16", 16, ""},
    {"U16", 16, ""},
    {"I32", 32, ""},
    {"U32", 32, ""},
    {"C64", 64, ""},
    {"I64", 64, ""},
    {"U64", 64, ""},
}};

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) {
  for (const SafetensorsType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

const SafetensorsType* safetensors_type_of_format(std::string_view format) {
  for (const SafetensorsType& type : kTypes) {
    if (type.format == format && !format.empty()) return &type;
  }
  return nullptr;
}

std::vector<std::string_view> safetensors_code_types() {
  std::vector<std::string_view> names;
  for (const SafetensorsType& type : kTypes) {
    if (!type.format.empty()) names.push_back(type.name);
  }
  return names;
}

}  // namespace numemu

// The element types of safetensors files, and the formats whose codes they store.
#pragma once
#include <string_view>
#include <vector>

namespace numemu {

/// A dtype. Shapes are logical; elements of less than a byte form one little-endian bit stream over
/// the whole tensor, which must end on a byte.
struct SafetensorsType {
  std::string_view name;  ///< "F8_E4M3"
  int bits;               ///< of one element
  std::string_view
      format;  ///< the row of formats.def whose codes are stored; "" where there is none
};

/// Every dtype of the format; nullptr for another name.
const SafetensorsType* safetensors_type(std::string_view name);
/// The dtype that stores codes of the format with that canonical name; nullptr where there is none.
const SafetensorsType* safetensors_type_of_format(std::string_view format);
/// The names of the dtypes that store codes of formats.
std::vector<std::string_view> safetensors_code_types();

}  // namespace numemu

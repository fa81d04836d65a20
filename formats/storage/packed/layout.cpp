// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/packed/layout.hpp"

#include <algorithm>
#include <array>

#include "formats/suggest.hpp"

namespace numemu {
namespace {

std::string with_hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

/// ggml's own names keep their underscores.
std::string layout_name(std::string_view id, int ggml_type) {
  return ggml_type < 0 || id == "ggml_mxfp4" ? with_hyphens(std::string(id)) : std::string(id);
}

}  // namespace

std::span<const PackedLayout> packed_layouts() {
  static const std::array kLayouts = {
#define NUMEMU_PACKED(id, reader, type, elements, bits, scales, tensors, source) \
  PackedLayout{layout_name(#id, type),                                           \
               PackedReader::reader,                                             \
               type,                                                             \
               elements,                                                         \
               bits,                                                             \
               scales,                                                           \
               tensors,                                                          \
               source},
#include "formats/storage/packed/layouts.def"
#undef NUMEMU_PACKED
  };
  return kLayouts;
}

const PackedLayout& find_packed_layout(std::string_view name) {
  return find_named("layout", name, packed_layouts(), &PackedLayout::name);
}

const PackedLayout* ggml_layout(std::uint32_t type) {
  for (const PackedLayout& layout : packed_layouts())
    if (layout.ggml_type >= 0 && static_cast<std::uint32_t>(layout.ggml_type) == type)
      return &layout;
  return nullptr;
}

void PackedTensor::count_rows() {
  length = shape.empty() ? 1 : shape.back();
  rows = element_count_of(shape).value_or(0) == 0 ? 0 : 1;
  if (rows == 0) return;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
}

std::int64_t rows_at_once(const PackedTensor& tensor, std::int64_t bytes) {
  const std::int64_t row =
      std::max<std::int64_t>(1, tensor.length) * static_cast<std::int64_t>(sizeof(float));
  return std::clamp<std::int64_t>(bytes / row, 1, std::max<std::int64_t>(1, tensor.rows));
}

}  // namespace numemu

#include "formats/storage/packed/layouts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/error.hpp"
#include "formats/storage/packed/stored_numbers.hpp"
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

SafetensorsNames::SafetensorsNames(std::string path, std::int64_t data,
                                   const SafetensorsHeader& header)
    : path_(std::move(path)), data_(data) {
  for (const SafetensorsEntry& entry : header.entries) sorted_.push_back(&entry);
  std::ranges::sort(sorted_, {}, &SafetensorsEntry::name);
}

const SafetensorsEntry* SafetensorsNames::find(const std::string& name) const {
  const auto found = std::ranges::lower_bound(sorted_, name, {}, &SafetensorsEntry::name);
  return found == sorted_.end() || (*found)->name != name ? nullptr : *found;
}

const SafetensorsEntry& SafetensorsNames::at(const std::string& name,
                                             const std::string& whole) const {
  const SafetensorsEntry* const entry = find(name);
  if (entry == nullptr) fail_tensor(path_, whole, "expected a stored tensor " + quote_name(name));
  return *entry;
}

namespace {

bool is_float(const SafetensorsEntry& entry) {
  const std::string_view type = entry.type->name;
  return type == "F16" || type == "BF16" || type == "F32" || type == "F64";
}

/// What stands before an end; "" where the name has another.
std::string before(const std::string& name, std::string_view end) {
  return name.size() > end.size() && name.ends_with(end) ? name.substr(0, name.size() - end.size())
                                                         : "";
}

/// Whether the tensor belongs to another one's codes.
bool belongs(const SafetensorsNames& names, const SafetensorsEntry& entry) {
  const auto has = [&](const std::string& name) { return names.find(name) != nullptr; };
  for (const std::string_view end : {"qzeros", "scales", "g_idx"}) {
    const std::string stem = before(entry.name, end);
    if (!stem.empty() && (has(stem + "qweight") || (end == "scales" && has(stem + "blocks"))))
      return true;
  }
  for (const std::string_view end :
       {"_scale", "_scale_2", "_scale_inv", "_global_scale", "_zero_point", "_shape", "_g_idx"}) {
    const std::string stem = before(entry.name, end);
    if (stem.empty()) continue;
    const SafetensorsEntry* const codes = names.find(stem);
    if (has(stem + "_packed") || (codes != nullptr && !is_float(*codes))) return true;
  }
  // Of activations and caches.
  for (const std::string_view end : {".input_scale", ".input_global_scale", ".input_zero_point",
                                     ".output_scale", ".k_scale", ".v_scale"}) {
    const std::string stem = before(entry.name, end);
    if (stem.empty()) continue;
    const SafetensorsEntry* const codes = names.find(stem + ".weight");
    if (has(stem + ".weight_packed") || has(stem + ".qweight") ||
        (codes != nullptr && !is_float(*codes)))
      return true;
  }
  return false;
}

}  // namespace

const SafetensorsEntry* scales_of_float(const SafetensorsNames& names,
                                        const SafetensorsEntry& entry) {
  if (!is_float(entry) || !entry.name.ends_with("weight")) return nullptr;
  const SafetensorsEntry* const scale = names.find(entry.name + "_scale");
  return scale == nullptr ? names.find(entry.name + "_scale_inv") : scale;
}

namespace {

/// AWQ packs the outputs, which scales count whole; GPTQ the inputs.
const char* column_layout(const SafetensorsNames& names, const SafetensorsEntry& codes,
                          const std::string& layer) {
  const SafetensorsEntry* const scales = names.find(layer + "scales");
  const bool packs_outputs = scales != nullptr && scales->shape.size() == 2 &&
                             codes.shape.size() == 2 && codes.shape[1] != scales->shape[1];
  return packs_outputs ? "awq" : "gptq";
}

PackedGroup group_of(const SafetensorsNames& names, const SafetensorsEntry& entry) {
  PackedGroup group{.name = entry.name, .codes = &entry};
  const std::string_view type = entry.type->name;
  const auto type_of = [&](const std::string& name) {
    const SafetensorsEntry* const found = names.find(name);
    return found == nullptr ? std::string_view() : found->type->name;
  };
  const auto is_micro = [](std::string_view scale) { return scale == "U8" || scale == "F8_E8M0"; };
  const char* layout = nullptr;
  if (const std::string layer = before(entry.name, "qweight"); !layer.empty()) {
    group.name = layer + "weight";
    layout = column_layout(names, entry, layer);
  } else if (const std::string packed = before(entry.name, "_packed"); !packed.empty()) {
    group.name = packed;
    if (type == "I32" || type == "U32") {
      layout = "pack-quantized";
    } else {
      layout = is_micro(type_of(packed + "_scale")) ? "mxfp4" : "nvfp4-packed";
    }
  } else if (const std::string blocks = before(entry.name, "blocks");
             !blocks.empty() && type == "U8" && !type_of(blocks + "scales").empty()) {
    group.name = blocks.substr(0, blocks.size() - 1);  // "." or "_"
    layout = "mxfp4-blocks";
  } else if (is_float(entry)) {
    layout = scales_of_float(names, entry) == nullptr ? "plain" : nullptr;
  } else if (const std::string_view scale = type_of(entry.name + "_scale");
             !scale.empty() || !type_of(entry.name + "_scale_inv").empty()) {
    if (type != "U8" && type != "F4") {
      layout = "scaled";
    } else if (is_micro(scale)) {
      layout = "mxfp4";
    } else {
      layout = "nvfp4";
    }
  }
  if (layout != nullptr) group.layout = &find_packed_layout(layout);
  return group;
}

}  // namespace

std::vector<PackedGroup> packed_groups(const SafetensorsNames& names,
                                       const SafetensorsHeader& header) {
  std::vector<PackedGroup> groups;
  for (const SafetensorsEntry& entry : header.entries)
    if (!belongs(names, entry)) groups.push_back(group_of(names, entry));
  return groups;
}

PackedTensor open_packed(const SafetensorsNames& names, const PackedGroup& group,
                         const PackedLayout& layout) {
  switch (layout.reader) {
    case PackedReader::plain:
      return open_plain(names, group, layout);
    case PackedReader::columns:
      return open_columns(names, group, layout);
    case PackedReader::packed_rows:
      return open_packed_rows(names, group, layout);
    case PackedReader::fp4:
      return open_fp4(names, group, layout);
    case PackedReader::scaled:
      return open_scaled(names, group, layout);
    case PackedReader::ggml:
      break;
  }
  fail_tensor(
      names.path(), group.codes->name,
      "--packed: expected a layout of safetensors files, found " + layout.name + " of GGUF files");
}

}  // namespace numemu

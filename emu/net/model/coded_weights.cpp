#include "emu/net/model/coded_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "emu/net/model/coded_blocks.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {
namespace {

constexpr std::string_view kParameters = "parameters", kScale = "_scale", kFormat = "_format",
                           kInput = ".input", kInputScale = ".input_scale",
                           kInputZero = ".input_zero_point", kInputFormat = ".input_format",
                           kWeight = ".weight", kWeightFormat = ".weight_format";
/// Of tensors of codes, behind their names.
constexpr std::array<std::string_view, 3> kCodedKeys = {kFormat, "_blocks", "_tiles"};

std::string_view type_of(const Format& format, OnnxType type) {
  if (format.kind != Kind::integer)
    return safetensors_type_of_format(find_format(float8_format(type)).name)->name;
  if (format.bits > 8) return format.is_signed ? "I16" : "U16";
  return format.is_signed ? "I8" : "U8";
}

OnnxType element_type(const Format& format, OnnxType type) {
  if (format.kind != Kind::integer) return type;
  if (format.bits > 8) return format.is_signed ? OnnxType::int16 : OnnxType::uint16;
  return format.is_signed ? OnnxType::int8 : OnnxType::uint8;
}

/// The tensors of a file in the order in which they were added, and its metadata.
class File {
 public:
  SafetensorsHeader header;

  void add(const std::string& name, std::string_view type, const Shape& shape, std::string bytes) {
    tensors_.push_back(
        {{name, safetensors_type(type), shape, element_count(shape), 0, 0}, std::move(bytes)});
  }
  void floats(const std::string& name, const Shape& shape, const float* x) {
    add(name, "F32", shape,
        {reinterpret_cast<const char*>(x),
         static_cast<std::size_t>(element_count(shape)) * sizeof(float)});
  }
  void write(const std::string& path) {
    std::ranges::sort(header.metadata);
    // Wide elements first: every tensor is aligned, without a hole.
    std::ranges::stable_sort(tensors_, std::greater(),
                             [](const auto& tensor) { return tensor.first.type->bits; });
    std::string data;
    for (auto& [entry, bytes] : tensors_) {
      entry.begin = static_cast<std::int64_t>(data.size());
      entry.end = entry.begin + static_cast<std::int64_t>(bytes.size());
      header.entries.push_back(entry);
      data += bytes;
    }
    write_atomically(path, {format_safetensors_header(path, header), data});
  }

 private:
  std::vector<std::pair<SafetensorsEntry, std::string>> tensors_;
};

void add_weight(File& file, const std::string& layer, const Parameter& parameter,
                const OnnxOperand& operand) {
  if (operand.blocks) {
    for (CodedTensor& tensor : block_tensors(operand, parameter.value.shape, layer))
      file.add(parameter.name + tensor.end, tensor.type, tensor.shape, std::move(tensor.bytes));
    file.header.metadata.emplace_back(parameter.name + std::string(blocks_key(*operand.blocks)),
                                      operand.blocks->format->name);
    return;
  }
  const std::optional<OnnxType> type = storage_type(*operand.format);
  if (!type) throw Error(fmt::format("{}: no type stores {}", layer, operand.format->name));
  // A byte for each element: fewer bits have no type there that readers agree on.
  file.add(parameter.name, type_of(*operand.format, *type), parameter.value.shape,
           stored_codes(*operand.format, element_type(*operand.format, *type), operand.codes));
  file.floats(parameter.name + std::string(kScale),
              {static_cast<std::int64_t>(operand.scales.size())}, operand.scales.data());
  file.header.metadata.emplace_back(parameter.name + std::string(kFormat), operand.format->name);
}

/// Whether a number that a code stands for is one of the format's range.
bool holds(const Format& format, double largest, float x) {
  if (std::isnan(x)) return format.has_nan();
  if (std::isinf(x)) return format.has_infinity();
  const double least = format.kind != Kind::integer ? -largest
                       : format.is_signed           ? -largest - 1
                                                    : 0;
  return x >= least && x <= largest;
}

[[noreturn]] void fail(const std::string& path, const std::string& tensor,
                       const std::string& expected) {
  throw Error(fmt::format("{}: tensor {}: expected {}", path, quote_name(tensor), expected));
}

void require_scales(const std::string& path, const NamedTensor& scale) {
  if (!std::ranges::all_of(scale.value.data, [](float x) { return x > 0 && std::isfinite(x); }))
    fail(path, scale.name, "positive and finite scales");
}

void decode_weight(const std::string& path, const NamedTensor& scale, const Format& format,
                   NamedTensor& weight) {
  Tensor& value = weight.value;
  const Elements& scales = scale.value.data;
  const std::int64_t groups = scale.value.size();
  if (groups < 1 || (groups > 1 && (value.shape.empty() || groups != value.dim(0))))
    fail(path, scale.name, "one scale or one per index of axis 0");
  require_scales(path, scale);
  const double largest = largest_value(format);
  if (!std::ranges::all_of(value.data, [&](float x) { return holds(format, largest, x); }))
    fail(path, weight.name, "codes of " + format.name);
  const std::int64_t each = std::max<std::int64_t>(1, value.size() / groups);
  for (std::int64_t j = 0; j < value.size(); ++j)
    value.data[static_cast<std::size_t>(j)] *= scales[static_cast<std::size_t>(j / each)];
}

}  // namespace

const Format& code_format(const std::string& path, const std::string& tensor,
                          std::string_view name) {
  const auto fail = [&](const std::string& found) {
    throw Error(fmt::format("{}: metadata: {}: expected a format of codes, found {}", path,
                            quote_name(tensor + std::string(kFormat)), found));
  };
  // A codebook's name is that of a file, which metadata must not open.
  if (name.find('(') != std::string::npos) fail(quote_name(name));
  const Format* format = nullptr;
  try {
    format = &find_format(name);
  } catch (const Error&) {
    fail(quote_name(name));
  }
  if (!storage_type(*format)) fail(quote_name(name));
  return *format;
}

std::string_view code_type(const Format& format) { return type_of(format, *storage_type(format)); }

void write_coded(const std::string& path, const Graph& graph, const OnnxLayers& layers,
                 const Checkpoint& described) {
  File file;
  file.header.metadata = described.metadata;
  Json names = Json::array();
  for (const Parameter* parameter : graph.parameters()) names.push_back(parameter->name);
  file.header.metadata.emplace_back(kParameters, names.dump());
  for (const Node& node : graph.nodes) {
    const auto found = layers.find(node.name);
    const OnnxLayer none, &layer = found == layers.end() ? none : found->second;
    for (const Parameter& parameter : std::as_const(*node.op).parameters()) {
      if (layer.weight && parameter.name == node.name + std::string(kWeight)) {
        add_weight(file, node.name, parameter, *layer.weight);
      } else {
        file.floats(parameter.name, parameter.value.shape, parameter.value.data.data());
      }
    }
    if (!layer.activation || layer.activation->scales.empty()) continue;
    const OnnxOperand& input = *layer.activation;
    const auto zero = static_cast<float>(input.zero_point);
    file.floats(node.name + std::string(kInputScale), {1}, input.scales.data());
    file.floats(node.name + std::string(kInputZero), {1}, &zero);
    file.header.metadata.emplace_back(node.name + std::string(kInputFormat), input.format->name);
  }
  for (const NamedBytes& bytes : described.bytes)
    file.add(bytes.name, "U8", {static_cast<std::int64_t>(bytes.data.size())}, bytes.data);
  file.write(path);
}

std::int64_t coded_weights_of(const std::string& path) {
  std::error_code ignored;
  if (!path.ends_with(".safetensors") || !std::filesystem::exists(path, ignored)) return 0;
  InputFile file(path);
  const SafetensorsHeader header = read_safetensors_header(file, {});
  if (std::ranges::any_of(header.entries,
                          [](const SafetensorsEntry& entry) { return is_tuned_from(entry.name); }))
    return 0;
  return std::ranges::count_if(header.entries, [&](const SafetensorsEntry& entry) {
    return std::ranges::any_of(header.metadata, [&](const auto& item) {
      return item.first.size() > entry.name.size() && item.first.starts_with(entry.name) &&
             std::ranges::find(kCodedKeys, item.first.substr(entry.name.size())) !=
                 kCodedKeys.end();
    });
  });
}

namespace {

/// The layer where a name has such an end, else "".
std::string layer_of(std::string_view name, std::string_view end) {
  return name.ends_with(end) ? std::string(name.substr(0, name.size() - end.size())) : "";
}

/// How exported layers code their inputs: a scale, a zero point and a format, all or none.
OnnxLayers inputs_of(const std::map<std::string, Tensor*>& tensors, const Checkpoint& checkpoint,
                     const std::string& path) {
  std::set<std::string> layers;
  for (const auto& [name, tensor] : tensors) {
    for (const std::string_view end : {kInputScale, kInputZero}) layers.insert(layer_of(name, end));
  }
  for (const auto& [key, text] : checkpoint.metadata) layers.insert(layer_of(key, kInputFormat));
  layers.erase("");
  OnnxLayers out;
  for (const std::string& layer : layers) {
    const auto number = [&](std::string_view end, const std::string& expected, const auto& holds) {
      const std::string name = layer + std::string(end);
      const auto found = tensors.find(name);
      if (found == tensors.end() || found->second->size() != 1 || !holds(found->second->data[0]))
        fail(path, name, expected);
      return found->second->data[0];
    };
    const std::string* const named =
        sorted_metadata_of(checkpoint, layer + std::string(kInputFormat));
    const std::string input = layer + std::string(kInput);
    const Format& format = code_format(path, input, named == nullptr ? "" : *named);
    const float scale = number(kInputScale, "one positive and finite scale",
                               [](float x) { return x > 0 && std::isfinite(x); });
    const float zero = number(kInputZero, "one zero point, a code of " + format.name, [&](float x) {
      return format.kind == Kind::integer
                 ? std::nearbyint(x) == x && holds(format, largest_value(format), x)
                 : x == 0;
    });
    out[layer].activation = {
        .format = &format, .scales = {scale}, .zero_point = static_cast<std::int32_t>(zero)};
  }
  return out;
}

std::map<std::string, Tensor*> by_name(Checkpoint& checkpoint) {
  std::map<std::string, Tensor*> tensors;
  for (NamedTensor& tensor : checkpoint.tensors) tensors[tensor.name] = &tensor.value;
  return tensors;
}

}  // namespace

std::optional<OnnxLayers> coded_layers_of(const std::string& path) {
  std::error_code ignored;
  if (!path.ends_with(".safetensors") || !std::filesystem::exists(path, ignored)) return {};
  InputFile file(path);
  const SafetensorsHeader header = read_safetensors_header(file, {});
  if (std::ranges::none_of(header.metadata,
                           [](const auto& item) { return item.first == kParameters; }))
    return {};
  Checkpoint checkpoint = read_safetensors_part(path, true, true, [](std::string_view name) {
    return name.ends_with(kScale) || name.ends_with(kInputZero);
  });
  const std::map<std::string, Tensor*> tensors = by_name(checkpoint);
  OnnxLayers layers = inputs_of(tensors, checkpoint, path);
  for (const auto& [key, text] : checkpoint.metadata) {
    const std::string layer = layer_of(key, kWeightFormat);
    if (layer.empty()) continue;
    const std::string weight = layer + std::string(kWeight), scale = weight + std::string(kScale);
    const auto found = tensors.find(scale);
    if (found == tensors.end() || found->second->size() < 1)
      fail(path, scale, "one scale or one per index of axis 0");
    require_scales(path, {scale, *found->second});
    layers[layer].weight = {.format = &code_format(path, weight, text),
                            .scales = found->second->data};
  }
  return layers;
}

void decode_weights(Checkpoint& checkpoint, const std::string& path) {
  const std::string* const list = sorted_metadata_of(checkpoint, std::string(kParameters));
  if (list == nullptr) return;
  const std::string where = path + ": metadata: parameters";
  const Json json = parse_json(*list, where);
  const JsonReader names(json, where);
  if (!json.is_array()) names.fail("a list of names");
  std::map<std::string, Tensor*> tensors = by_name(checkpoint);
  // Each once: a list that repeats a name must not multiply its tensor.
  const auto take = [&](const std::string& name) {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      throw Error(fmt::format("{}: expected a tensor {}, found none", path, quote_name(name)));
    Tensor value = std::move(*found->second);
    tensors.erase(found);
    return value;
  };
  std::vector<NamedTensor> parameters;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string name = names.element(i).text("");
    Tensor blocks = decoded_blocks(
        path, name, [&](const std::string& key) { return sorted_metadata_of(checkpoint, key); },
        take);
    if (!blocks.empty()) {
      parameters.push_back({name, std::move(blocks)});
      continue;
    }
    NamedTensor weight{name, take(name)};
    const std::string* const format = sorted_metadata_of(checkpoint, name + std::string(kFormat));
    if (format != nullptr) {
      const std::string scale = name + std::string(kScale);
      decode_weight(path, {scale, take(scale)}, code_format(path, name, *format), weight);
    }
    parameters.push_back(std::move(weight));
  }
  inputs_of(tensors, checkpoint, path);
  checkpoint.tensors = std::move(parameters);
}

}  // namespace numemu::net

// A zip begins with PK and a kind of header; safetensors with 8 bytes of length and a brace.
#include "emu/net/model/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "emu/net/data/npz.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/tensor.hpp"
#include "emu/net/tied.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/fields.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/packed/packed_file.hpp"
#include "formats/storage/safetensors.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {

Checkpoint read_npz(const std::string& path) { return {.tensors = read_npz_tensors(path)}; }

namespace {

/// Whether the program itself wrote the file, whose codes decode_weights() reads.
bool is_own(const PackedFile& file) {
  return std::ranges::any_of(file.metadata(), [](const auto& item) {
    return item.first == "parameters" || item.first == "graph";
  });
}

Checkpoint unpacked(PackedFile& file) {
  constexpr std::int64_t kPart = 16 << 20;
  std::vector<PackedTensor> stored;
  std::int64_t bytes = kPart;
  for (const PackedFile::Item& item : file.items()) {
    stored.push_back(file.tensor(item.name));
    const auto own = static_cast<std::int64_t>(sizeof(float)) * stored.back().elements();
    bytes = bytes > kNoMemoryBound - own ? kNoMemoryBound : bytes + own;
  }
  require_beside_held(bytes, file.path() + ": its tensors as float32");
  Checkpoint checkpoint{.tensors = {}, .metadata = file.metadata()};
  for (const PackedTensor& one : stored) {
    Tensor value(one.shape);
    const std::int64_t rows = rows_at_once(one, kPart);
    for (std::int64_t first = 0; first < one.rows; first += rows)
      file.read(one, first, std::min(rows, one.rows - first),
                value.data.data() + first * one.length);
    checkpoint.tensors.push_back({one.name, std::move(value)});
  }
  return checkpoint;
}

}  // namespace

Checkpoint read_weights(const std::string& path) {
  constexpr std::int64_t kLengthBytes = 8;
  constexpr std::string_view kEntry = "PK\3\4", kEmptyArchive = "PK\5\6";
  InputFile file(path);
  const std::string start = file.read(std::min(file.left(), kLengthBytes + 1));
  if (start.starts_with(kEntry) || start.starts_with(kEmptyArchive)) return read_npz(path);
  const bool gguf = is_gguf(start);
  if (gguf || (start.size() > kLengthBytes && start[kLengthBytes] == '{')) {
    PackedFile packed(path);
    if (gguf || (packed.has_codes() && !is_own(packed))) return unpacked(packed);
    Checkpoint checkpoint = read_safetensors(path, true, true);
    decode_weights(checkpoint, path);
    return checkpoint;
  }
  file.fail_at(0,
               "expected safetensors (a length and a JSON header), GGUF or .npz (a zip archive), "
               "found none of them");
}

std::string digest_of(const Graph& graph) {
  constexpr std::size_t kDigits = 16;
  Sha256 digest;
  for (const Parameter* parameter : graph.parameters()) {
    require_elements(parameter->value, parameter->name);
    digest.add(parameter->name.c_str(), parameter->name.size() + 1);
    digest.add(parameter->value.data.data(), parameter->value.data.size() * sizeof(float));
  }
  return digest.hex().substr(0, kDigits);
}

namespace {

/// As an import requires it: constants that activations meet may be infinite, as masks are.
void require_finite(const NamedTensor& tensor, bool constant, const std::string& path) {
  for (std::size_t i = 0; i < tensor.value.data.size(); ++i) {
    const float v = tensor.value.data[i];
    if (std::isfinite(v) || (constant && std::isinf(v))) continue;
    throw Error(fmt::format("{}: tensor {}: element {}: expected a {}, found {}", path,
                            quote_name(tensor.name), i, constant ? "number" : "finite number", v));
  }
}

}  // namespace

void load_parameters(Graph& graph, const Checkpoint& checkpoint, const std::string& path) {
  std::map<std::string, const Tensor*> tensors;
  for (const NamedTensor& tensor : checkpoint.tensors) tensors[tensor.name] = &tensor.value;
  const std::vector<Parameter*> parameters = graph.parameters();
  std::vector<std::string> names;
  for (const Parameter* parameter : parameters) {
    names.push_back(parameter->name);
    const auto found = tensors.find(parameter->name);
    if (found == tensors.end() && parameter->is_tied()) continue;
    if (found == tensors.end()) {
      throw Error(fmt::format("{}: expected a tensor {} of the network {}, found none", path,
                              quote_name(parameter->name), graph.name));
    }
    if (found->second->shape != parameter->value.shape) {
      throw Error(fmt::format("{}: tensor {}: expected shape {} of the network {}, found {}", path,
                              quote_name(parameter->name), to_string(parameter->value.shape),
                              graph.name, to_string(found->second->shape)));
    }
  }
  std::set<std::string> constants;
  for (const Node& node : graph.nodes) {
    if (node.op->kind() != "constant") continue;
    for (const Parameter& parameter : node.op->parameters()) constants.insert(parameter.name);
  }
  for (const NamedTensor& tensor : checkpoint.tensors) {
    require_finite(tensor, constants.contains(name_in_graph(tensor.name)), path);
    if (is_tuned_from(tensor.name)) continue;
    if (std::find(names.begin(), names.end(), tensor.name) == names.end()) {
      throw Error(
          fmt::format("{}: tensor {}: expected a parameter of the network {}; did you mean '{}'?",
                      path, quote_name(tensor.name), graph.name, nearest_name(tensor.name, names)));
    }
  }
  // Only now: a checkpoint that does not fit leaves the graph as it was.
  for (Parameter* parameter : parameters) {
    if (const auto found = tensors.find(parameter->name); found != tensors.end())
      parameter->value = *found->second;
  }
  // A file may have the same numbers for each of them, or others, or those of the first alone.
  follow_tied(graph, [&](const Parameter& tied) { return !tensors.contains(tied.name); });
  untie_changed(graph);
}

Checkpoint parameters_of(const Graph& graph) {
  Checkpoint checkpoint;
  for (const Parameter* parameter : graph.parameters())
    checkpoint.tensors.push_back({parameter->name, parameter->value});
  return checkpoint;
}

namespace {

constexpr std::string_view kTiedKey = "tied";

struct StoredTie {
  std::string parameter, to;
  std::vector<std::int64_t> axes;

  static void fields(auto& self, const auto& visit) {
    visit("parameter", self.parameter, kNeeded);
    visit("to", self.to, kNeeded);
    visit("axes", self.axes);
  }
};

struct StoredTies {
  std::vector<StoredTie> tied;

  static void fields(auto& self, const auto& visit) { visit("parameters", self.tied); }
};

}  // namespace

void store_ties(Checkpoint& checkpoint, const Graph& graph) {
  StoredTies stored;
  for (const Parameter* parameter : graph.parameters()) {
    if (!parameter->is_tied()) continue;
    stored.tied.push_back({parameter->name,
                           parameter->tied_to,
                           {parameter->tied_axes.begin(), parameter->tied_axes.end()}});
    std::erase_if(checkpoint.tensors,
                  [&](const NamedTensor& tensor) { return tensor.name == parameter->name; });
  }
  if (stored.tied.empty()) return;
  checkpoint.metadata.emplace_back(kTiedKey, json_of(stored).dump());
  std::ranges::sort(checkpoint.metadata);
}

namespace {

/// Ties what store_ties() wrote.
void restore_ties(Graph& graph, const Checkpoint& checkpoint, const std::string& path) {
  const std::string text = metadata_of(checkpoint, kTiedKey);
  if (text.empty()) return;
  const std::string where = path + ": metadata: tied";
  StoredTies stored;
  read_fields(parse_json(text, where), where, stored);
  for (const StoredTie& each : stored.tied) {
    std::vector<int> axes;
    for (const std::int64_t axis : each.axes)
      axes.push_back(static_cast<int>(std::clamp<std::int64_t>(axis, -1, kMostTiedAxes)));
    at(where, [&] { tie(graph, each.parameter, each.to, std::move(axes)); });
  }
}

constexpr std::string_view kPrefix = "tuned_from/";

}  // namespace

bool is_tuned_from(std::string_view tensor) { return tensor.starts_with(kPrefix); }

std::string name_in_graph(std::string_view tensor) {
  return std::string(is_tuned_from(tensor) ? tensor.substr(kPrefix.size()) : tensor);
}

void add_tuned_from(Checkpoint& checkpoint, const Graph& before) {
  for (const Parameter* parameter : before.parameters())
    checkpoint.tensors.push_back({std::string(kPrefix) + parameter->name, parameter->value});
}

bool has_tuned_from(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors,
                             [](const NamedTensor& tensor) { return is_tuned_from(tensor.name); });
}

void load_tuned_from(Graph& graph, const Checkpoint& checkpoint, const std::string& path) {
  Checkpoint before;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (is_tuned_from(tensor.name))
      before.tensors.push_back({name_in_graph(tensor.name), tensor.value});
  }
  load_parameters(graph, before, path);
}

namespace {

constexpr std::string_view kKey = "batch_norm", kFolded = "folded";

}  // namespace

std::string metadata_of(const Checkpoint& checkpoint, std::string_view key) {
  for (const auto& [name, value] : checkpoint.metadata) {
    if (name == key) return value;
  }
  return "";
}

void mark_folded(Checkpoint& checkpoint) { checkpoint.metadata.emplace_back(kKey, kFolded); }

bool is_folded(const Checkpoint& checkpoint) { return metadata_of(checkpoint, kKey) == kFolded; }

void load_checkpoint(Graph& graph, const Checkpoint& checkpoint, const std::string& path) {
  const std::string state = metadata_of(checkpoint, kKey);
  if (state == kFolded) {
    fold_batch_norm(graph);
  } else if (!state.empty()) {
    throw Error(path + ": metadata 'batch_norm': expected 'folded', found '" + state + "'");
  }
  restore_ties(graph, checkpoint, path);
  load_parameters(graph, checkpoint, path);
}

}  // namespace numemu::net

// Identity, numbers and digest are metadata of a safetensors file.
#include "emu/net/train/state_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "emu/net/model/weights.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {
namespace {

constexpr std::string_view kDigest = "digest";

Json identity_json(const RunIdentity& identity) {
  Json json = Json::object();
  for (const auto& [key, value] : identity) json[key] = value;
  return json;
}

// Recipes are long; what differs in them is not for one line.
std::string shown(const std::string& value) {
  constexpr std::size_t kLongest = 60;
  if (value.size() <= kLongest) return value;
  return "a text with the digest " + sha256_hex(value).substr(0, 16);
}

/// Of everything else in the file: a flipped bit of a weight, or another number of the step that
/// comes next, would otherwise resume without a word.
std::string digest_of_state(const Checkpoint& file) {
  std::string bytes;
  for (const auto& [key, text] : file.metadata) {
    if (key != kDigest) bytes += fmt::format("{}={}\n", key, sha256_hex(text));
  }
  for (const NamedTensor& tensor : file.tensors) {
    const std::string_view data(reinterpret_cast<const char*>(tensor.value.data.data()),
                                tensor.value.data.size() * sizeof(float));
    bytes += tensor.name + '=' + sha256_hex(data) + '\n';
  }
  for (const NamedBytes& part : file.bytes) bytes += part.name + '=' + sha256_hex(part.data) + '\n';
  return sha256_hex(bytes);
}

/// Parts of no bytes that follow each other share their place in the file, where readers order them
/// by name: so they are written.
void sort_empty(std::vector<NamedBytes>& parts) {
  const auto full = [](const NamedBytes& part) { return !part.data.empty(); };
  for (auto first = parts.begin(); first != parts.end();) {
    const auto last = std::find_if(first, parts.end(), full);
    std::sort(first, last, [](const auto& a, const auto& b) { return a.name < b.name; });
    first = std::find_if_not(last, parts.end(), full);
  }
}

/// Null where the text is no JSON; throws Error for what parse_guarded() refuses beyond that.
Json parse_metadata(const std::string& text, const std::string& where) {
  try {
    return parse_guarded(text, where);
  } catch (const JsonSyntaxError&) {
    return nullptr;
  }
}

Json metadata(const Checkpoint& file, const std::string& path, const std::string& key) {
  for (const auto& [name, text] : file.metadata) {
    if (name != key) continue;
    const Json json = parse_metadata(text, path + ": metadata: " + key);
    const auto is_text = [](const Json& value) { return value.is_string(); };
    if (json.is_object() && (key != "identity" || std::all_of(json.begin(), json.end(), is_text)))
      return json;
  }
  throw Error(path + ": metadata: " + key + ": expected a JSON object of a run");
}

}  // namespace

void write_state_file(const std::string& path, StateFile state) {
  Checkpoint file;
  file.tensors = std::move(state.tensors);
  file.bytes = std::move(state.bytes);
  sort_empty(file.bytes);
  file.metadata = {{"identity", identity_json(state.identity).dump()},
                   {"run", std::move(state.numbers)}};
  file.metadata.insert(file.metadata.begin(), {std::string(kDigest), digest_of_state(file)});
  write_safetensors(path, file);
}

StateFile read_state_file(const std::string& path) {
  Checkpoint file = read_safetensors(path, true);
  StateFile state;
  const Json identity = metadata(file, path, "identity");
  for (const auto& item : identity.items())
    state.identity.emplace_back(item.key(), item.value().get<std::string>());
  state.numbers = metadata(file, path, "run").dump();
  if (metadata_of(file, kDigest) != digest_of_state(file))
    throw Error(path +
                ": metadata: digest: expected that of the rest; the file is damaged, or of an "
                "earlier version: use --fresh");
  state.tensors = std::move(file.tensors);
  state.bytes = std::move(file.bytes);
  return state;
}

std::string difference(const RunIdentity& stored, const RunIdentity& wanted) {
  const auto value_in = [](const RunIdentity& identity, const std::string& key) {
    const auto found = std::find_if(identity.begin(), identity.end(),
                                    [&](const auto& pair) { return pair.first == key; });
    return found == identity.end() ? nullptr : &found->second;
  };
  for (const auto& [key, value] : wanted) {
    const std::string* const was = value_in(stored, key);
    if (was == nullptr || *was != value)
      return fmt::format("{} was {}, is {}", key, was ? shown(*was) : "not there", shown(value));
  }
  for (const auto& [key, value] : stored) {
    if (value_in(wanted, key) == nullptr)
      return fmt::format("{} was {}, now missing", key, shown(value));
  }
  return "";
}

void refuse_state(const std::string& path, const std::string& difference) {
  throw Error(
      fmt::format("{}: the state of an unfinished run that differs: {}; use --fresh or --out {}",
                  path, difference, fresh_folder(std::filesystem::path(path).parent_path())));
}

}  // namespace numemu::net

// The file of a run: tensors by name ("parameter/...", "optimizer/...", "best/..."), bytes of the
// numerics ("numerics/..."), numbers as JSON in the metadata.
#include "emu/net/train/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/train/run_numbers.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/storage/output_folder.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu::net {
namespace {

constexpr char kNumerics[] = "numerics/";

// Every tensor of the run by its name in the file, where it is now. Best parameters only with
// `best`.
std::vector<std::pair<std::string, Tensor*>> tensors_of(const Run& run, bool best) {
  std::vector<std::pair<std::string, Tensor*>> tensors;
  const std::vector<Parameter*> parameters = run.graph.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::string& name = parameters[p]->name;
    tensors.emplace_back("parameter/" + name, &parameters[p]->value);
    for (const StateTensor& state : run.optimizer.state(p))
      tensors.emplace_back(fmt::format("optimizer/{}/{}", name, state.name), state.value);
    if (best) tensors.emplace_back("best/" + name, &run.state.best.values.at(p));
  }
  return tensors;
}

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

/// Of everything but the metadata: a flipped bit of a weight would otherwise resume without a word.
std::string digest_of(const Checkpoint& file) {
  std::string bytes;
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

/// A stored state, taken apart.
class StoredRun {
 public:
  explicit StoredRun(const std::string& path) : path_(path), file_(read_safetensors(path, true)) {
    const auto digest = std::find_if(file_.metadata.begin(), file_.metadata.end(),
                                     [](const auto& entry) { return entry.first == "digest"; });
    if (digest == file_.metadata.end() || digest->second != digest_of(file_))
      throw Error(path + ": metadata: digest: expected that of the tensors; the file is damaged");
    identity_ = metadata("identity");
    numbers_ = metadata("run");
    for (NamedTensor& tensor : file_.tensors) tensors_[tensor.name] = &tensor.value;
  }

  /// "" where the identities agree, else the first difference.
  std::string difference(const RunIdentity& wanted) const {
    for (const auto& [key, value] : wanted) {
      const auto found = identity_.find(key);
      if (found == identity_.end() || *found != value) {
        return fmt::format(
            "{} was {}, is {}", key,
            found == identity_.end() ? "not there" : shown(found->get<std::string>()),
            shown(value));
      }
    }
    for (const Json::Member& was : identity_.items()) {
      const bool known = std::any_of(wanted.begin(), wanted.end(),
                                     [&](const auto& pair) { return pair.first == was.name; });
      if (!known) return fmt::format("{} was {}, now missing", was.name, shown(was.json.text()));
    }
    return "";
  }

  /// Readable also where the rest is that of another run.
  bool finished() const { return numbers_.value("finished", Json()) == Json(true); }

  RunState numbers(std::span<double> scalars) const {
    return read_numbers(numbers_, path_ + ": metadata: run", scalars);
  }

  const Tensor& tensor(const std::string& name, const Shape& shape) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second->shape != shape) {
      throw Error(fmt::format("{}: tensor {}: expected shape {}, found {}", path_, quote_name(name),
                              to_string(shape),
                              found == tensors_.end() ? "none" : to_string(found->second->shape)));
    }
    return *found->second;
  }

  std::vector<std::pair<std::string, std::string>> numerics_state() const {
    std::vector<std::pair<std::string, std::string>> state;
    for (const NamedBytes& bytes : file_.bytes) {
      if (!bytes.name.starts_with(kNumerics)) {
        throw Error(fmt::format("{}: tensor {}: expected a name that starts with {}", path_,
                                quote_name(bytes.name), kNumerics));
      }
      state.emplace_back(bytes.name.substr(sizeof kNumerics - 1), bytes.data);
    }
    return state;
  }

 private:
  Json metadata(const std::string& key) const {
    for (const auto& [name, text] : file_.metadata) {
      if (name != key) continue;
      const Json json = parse_metadata(text, path_ + ": metadata: " + key);
      const auto is_text = [](const Json& value) { return value.is_string(); };
      if (json.is_object() && (key != "identity" || std::all_of(json.begin(), json.end(), is_text)))
        return json;
    }
    throw Error(path_ + ": metadata: " + key + ": expected a JSON object of a training run");
  }

  std::string path_;
  Checkpoint file_;
  Json identity_, numbers_;
  std::map<std::string, const Tensor*> tensors_;
};

}  // namespace

void write_run_state(const std::string& path, const RunIdentity& identity, const Run& run) {
  Checkpoint file;
  for (const auto& [name, tensor] : tensors_of(run, run.state.best.epoch >= 0))
    file.tensors.push_back({name, *tensor});
  std::vector<double> scalars;
  for (const double* scalar : run.optimizer.scalars()) scalars.push_back(*scalar);
  std::vector<std::pair<std::string, std::string>> state;
  run.numerics.save_state(state);
  for (auto& [name, bytes] : state) file.bytes.push_back({kNumerics + name, std::move(bytes)});
  sort_empty(file.bytes);
  file.metadata = {{"digest", digest_of(file)},
                   {"identity", identity_json(identity).dump()},
                   {"run", numbers_json(run.state, scalars).dump()}};
  write_safetensors(path, file);
}

bool read_run_state(const std::string& path, const RunIdentity& identity, const Run& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  const StoredRun stored(path);
  const std::string difference = stored.difference(identity);
  std::vector<double> scalars(run.optimizer.scalars().size());
  if (!difference.empty()) {
    if (stored.finished()) return false;
    throw Error(
        fmt::format("{}: the state of an unfinished run that differs: {}; use --fresh or --out {}",
                    path, difference, fresh_folder(std::filesystem::path(path).parent_path())));
  }
  RunState state = stored.numbers(scalars);
  const Run target{run.graph, run.optimizer, run.numerics, state};
  if (state.best.epoch >= 0) {
    for (const Parameter* parameter : run.graph.parameters())
      state.best.values.emplace_back(parameter->value.shape);
  }
  const auto tensors = tensors_of(target, state.best.epoch >= 0);
  for (const auto& [name, tensor] : tensors) stored.tensor(name, tensor->shape);
  // Only now: a file that does not fit leaves the run as it was.
  run.numerics.load_state(stored.numerics_state());
  for (const auto& [name, tensor] : tensors) *tensor = stored.tensor(name, tensor->shape);
  const std::vector<double*> places = run.optimizer.scalars();
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = scalars[i];
  run.state = std::move(state);
  return true;
}

}  // namespace numemu::net

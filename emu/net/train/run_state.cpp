// The file of a run: tensors by name ("parameter/...", "optimizer/...", "best/..."), bytes of the
// numerics ("numerics/..."), numbers as JSON in the metadata.
#include "emu/net/train/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/state_file.hpp"
#include "formats/error.hpp"
#include "formats/storage/fields.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {

namespace {

// A field that is added to one of these must be listed in its fields().
static_assert(sizeof(EpochMetrics) ==
              10 * sizeof(double) + sizeof(Member<double>) + sizeof(std::vector<WireBits>));
static_assert(sizeof(EpochSums) ==
              8 * sizeof(double) + sizeof(Member<double>) + sizeof(std::vector<WireBits>));

struct Scalar {
  double value = 0;

  template <class Self, class Visit>
  static void fields(Self& self, const Visit& visit) {
    visit("value", self.value);
  }
};

/// Everything of the state but the best values. Floating-point numbers keep every bit (kBits).
template <class State>
struct Numbers {
  State& state;
  std::vector<Scalar> optimizer;

  template <class Self, class Visit>
  static void fields(Self& self, const Visit& visit) {
    visit("step", self.state.step);
    visit("epoch", self.state.epoch);
    visit("finished", self.state.finished);
    visit("best_epoch", self.state.best.epoch);
    visit("best_loss", self.state.best.loss);
    visit("sums", self.state.sums);
    visit("optimizer", self.optimizer);
    visit("history", self.state.history);
  }
};

}  // namespace

Json numbers_json(const RunState& state, std::span<const double> scalars) {
  Numbers<const RunState> numbers{state, {}};
  for (const double scalar : scalars) numbers.optimizer.push_back({scalar});
  return json_of(numbers, kBits);
}

RunState read_numbers(const Json& json, const std::string& where, std::span<double> scalars) {
  const auto fail = [&](const std::string& what) { throw Error(where + ": " + what); };
  if (const Json* const optimizer = json.find_path("/optimizer");
      optimizer != nullptr && (!optimizer->is_array() || optimizer->size() != scalars.size()))
    fail(fmt::format("optimizer: expected {} numbers", scalars.size()));
  RunState state;
  Numbers<RunState> numbers{state, {}};
  read_fields(json, where, numbers, kBits);
  for (std::size_t i = 0; i < scalars.size(); ++i) scalars[i] = numbers.optimizer[i].value;
  if (state.step < 0 || state.epoch < 0 || state.sums.steps < 0) fail("step: expected at least 0");
  return state;
}

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

/// A stored state, taken apart.
class StoredRun {
 public:
  explicit StoredRun(const std::string& path)
      : path_(path),
        file_(read_state_file(path)),
        numbers_(parse_guarded(file_.numbers, path + ": metadata: run")) {
    for (NamedTensor& tensor : file_.tensors) tensors_[tensor.name] = &tensor.value;
  }

  std::string difference(const RunIdentity& wanted) const {
    return net::difference(file_.identity, wanted);
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
  std::string path_;
  StateFile file_;
  Json numbers_;
  std::map<std::string, const Tensor*> tensors_;
};

}  // namespace

void write_run_state(const std::string& path, const RunIdentity& identity, const Run& run) {
  StateFile file;
  file.identity = identity;
  for (const auto& [name, tensor] : tensors_of(run, run.state.best.epoch >= 0))
    file.tensors.push_back({name, *tensor});
  std::vector<double> scalars;
  for (const double* scalar : run.optimizer.scalars()) scalars.push_back(*scalar);
  file.numbers = numbers_json(run.state, scalars).dump();
  std::vector<std::pair<std::string, std::string>> state;
  run.numerics.save_state(state);
  for (auto& [name, bytes] : state) file.bytes.push_back({kNumerics + name, std::move(bytes)});
  write_state_file(path, std::move(file));
}

bool read_run_state(const std::string& path, const RunIdentity& identity, const Run& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  const StoredRun stored(path);
  const std::string difference = stored.difference(identity);
  std::vector<double> scalars(run.optimizer.scalars().size());
  if (!difference.empty()) {
    if (stored.finished()) return false;
    refuse_state(path, difference);
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

// The file of a run: tensors by name ("parameter/...", "optimizer/...", "best/..."), bytes of the
// numerics ("numerics/..."), numbers as JSON in the metadata.
#include "emu/net/train/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <map>

#include "emu/net/train/state_file.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu::net {

namespace {

// A field that is added to one of these must be listed below.
static_assert(sizeof(EpochMetrics) == 10 * sizeof(double));
static_assert(sizeof(EpochSums) == 8 * sizeof(double));

template <class Metrics, class Visit>
void visit_metrics(Metrics& m, Visit&& visit) {
  visit("epoch", m.epoch);
  visit("step", m.step);
  visit("learning_rate", m.learning_rate);
  visit("train_loss", m.train_loss);
  visit("train_top1", m.train_top1);
  visit("validation_loss", m.validation_loss);
  visit("validation_top1", m.validation_top1);
  visit("gradient_norm", m.gradient_norm);
  visit("skipped", m.skipped);
  visit("loss_scale", m.loss_scale);
}

template <class Sums, class Visit>
void visit_sums(Sums& s, Visit&& visit) {
  visit("loss", s.loss);
  visit("gradient_norm", s.gradient_norm);
  visit("targets", s.targets);
  visit("right", s.right);
  visit("steps", s.steps);
  visit("skipped", s.skipped);
  visit("learning_rate", s.learning_rate);
  visit("loss_scale", s.loss_scale);
}

template <class State, class Visit>
void visit_state(State& s, Visit&& visit) {
  visit("step", s.step);
  visit("epoch", s.epoch);
  visit("finished", s.finished);
  visit("best_epoch", s.best.epoch);
  visit("best_loss", s.best.loss);
}

struct Writer {
  Json json = Json::object();
  void operator()(const char* key, std::int64_t value) { json[key] = value; }
  void operator()(const char* key, bool value) { json[key] = value; }
  void operator()(const char* key, double value) {
    json[key] = fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value));
  }
};

struct Reader {
  const Json& json;
  std::string where;

  [[noreturn]] void fail(const std::string& key, const char* expected) const {
    throw Error(fmt::format("{}: {}: expected {}", where, key, expected));
  }
  const Json& at(const char* key) const {
    if (!json.is_object() || !json.contains(key)) fail(key, "a value");
    return json[key];
  }
  void operator()(const char* key, std::int64_t& value) const {
    const Json& number = at(key);
    if (!number.is_number_integer()) fail(key, "a whole number");
    value = number.get<std::int64_t>();
  }
  void operator()(const char* key, bool& value) const {
    const Json& flag = at(key);
    if (!flag.is_boolean()) fail(key, "true or false");
    value = flag.get<bool>();
  }
  void operator()(const char* key, double& value) const {
    const Json& text = at(key);
    const std::string digits = text.is_string() ? text.get<std::string>() : "";
    std::uint64_t bits = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, bits, 16);
    if (digits.size() != 16 || error != std::errc() || stop != end)
      fail(key, "16 hexadecimal digits of a float64");
    value = std::bit_cast<double>(bits);
  }
};

}  // namespace

Json numbers_json(const RunState& state, std::span<const double> scalars) {
  Writer run;
  visit_state(state, run);
  Writer sums;
  visit_sums(state.sums, sums);
  run.json["sums"] = std::move(sums.json);
  run.json["optimizer"] = Json::array();
  for (const double scalar : scalars) {
    Writer one;
    one("value", scalar);
    run.json["optimizer"].push_back(std::move(one.json));
  }
  run.json["history"] = Json::array();
  for (const EpochMetrics& metrics : state.history) {
    Writer one;
    visit_metrics(metrics, one);
    run.json["history"].push_back(std::move(one.json));
  }
  return run.json;
}

RunState read_numbers(const Json& json, const std::string& where, std::span<double> scalars) {
  RunState state;
  const Reader run{json, where};
  visit_state(state, run);
  visit_sums(state.sums, Reader{run.at("sums"), where + ": sums"});
  const Json& optimizer = run.at("optimizer");
  if (!optimizer.is_array() || optimizer.size() != scalars.size())
    run.fail("optimizer", fmt::format("{} numbers", scalars.size()).c_str());
  for (std::size_t i = 0; i < scalars.size(); ++i)
    Reader{optimizer[i], where + ": optimizer"}("value", scalars[i]);
  const Json& history = run.at("history");
  if (!history.is_array()) run.fail("history", "a list");
  for (const Json& entry : history)
    visit_metrics(state.history.emplace_back(), Reader{entry, where + ": history"});
  if (state.step < 0 || state.epoch < 0 || state.sums.steps < 0) run.fail("step", "at least 0");
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

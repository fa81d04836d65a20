// One list of fields for writing and reading, so that neither forgets one.
#include "emu/net/train/run_numbers.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "formats/error.hpp"

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

}  // namespace numemu::net

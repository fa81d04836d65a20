#include "experiments/report/not_finite_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/findings.hpp"
#include "experiments/report/record.hpp"

namespace numemu::experiments {
namespace {

double count(const Json& json, const char* key) { return json_number(json, {key}).value_or(0); }

/// What was counted on the test samples, else on those that SQNR is measured on; null if neither.
const Json* counted(const Json& row, bool& test) {
  test = true;
  if (const Json* found = json_at(row, {"not_finite", "test"})) return found;
  test = false;
  return json_at(row, {"not_finite", "reference"});
}

/// "12 of 40 outputs are NaN", "... are infinite", "... are NaN (10) or infinite (2)".
std::string amount(const Json& counts, const char* what, const char* verb) {
  const double nan = count(counts, "nan"), infinite = count(counts, "infinite");
  std::string out = fmt::format("{} of {} {} {}", grouped(nan + infinite),
                                grouped(count(counts, "of")), what, verb);
  if (nan > 0 && infinite > 0)
    return out + fmt::format("NaN ({}) or infinite ({})", grouped(nan), grouped(infinite));
  return out + (nan > 0 ? "NaN" : "infinite");
}

std::string causes(const Json& layer) {
  std::string out;
  const Json* list = json_at(layer, {"causes"});
  if (!list || !list->is_array()) return out;
  for (const Json& cause : *list) {
    if (cause.is_string()) out += (out.empty() ? "" : ", ") + cause.get<std::string>();
  }
  return out;
}

const Json& layers_of(const Json& counts) {
  static const Json none = Json::array();
  const Json* layers = json_at(counts, {"layers"});
  return layers && layers->is_array() ? *layers : none;
}

}  // namespace

bool is_not_finite(const Json& row) {
  if (const Json* found = json_at(row, {"not_finite"})) return found->is_object();
  const Json* loss = json_at(row, {"metrics", "loss"});
  return loss && loss->is_null();
}

std::vector<std::string> not_finite_sentences(const Json& row) {
  std::vector<std::string> out;
  if (!is_not_finite(row)) return out;
  bool test = true;
  const Json* counts = counted(row, test);
  if (!counts) return {"outputs are NaN or infinite (the row does not count them)"};
  const std::string samples = fmt::format("{} {} samples", grouped(count(*counts, "samples")),
                                          test ? "test" : "calibration");
  const Json* outputs = json_at(*counts, {"outputs"});
  if (outputs && count(*outputs, "nan") + count(*outputs, "infinite") > 0) {
    out.push_back(fmt::format("{} ({})", amount(*outputs, "outputs", "are "), samples));
  } else {
    out.push_back(fmt::format("the outputs are finite, results of layers are not ({})", samples));
  }
  std::string carried;
  for (const Json& layer : layers_of(*counts)) {
    const std::string name = json_text(layer, {"name"});
    if (count(layer, "inherited") >= count(layer, "nan") + count(layer, "infinite")) {
      carried += (carried.empty() ? "" : ", ") + name;
      continue;
    }
    out.push_back(fmt::format("{}: {}: {}", name, amount(layer, "results", ""), causes(layer)));
  }
  if (!carried.empty()) out.push_back("passed on by " + carried);
  return out;
}

double not_finite_results(const Json& row, const std::string& name) {
  double most = 0;
  for (const char* pass : {"test", "reference"}) {
    const Json* counts = json_at(row, {"not_finite", pass});
    if (!counts) continue;
    for (const Json& layer : layers_of(*counts)) {
      if (json_text(layer, {"name"}) == name)
        most = std::max(most, count(layer, "nan") + count(layer, "infinite"));
    }
  }
  return most;
}

}  // namespace numemu::experiments

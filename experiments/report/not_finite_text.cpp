#include "experiments/report/not_finite_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/findings.hpp"
#include "formats/joined.hpp"

namespace numemu::experiments {
namespace {

/// "12 of 40 outputs are NaN", "... are infinite", "... are NaN (10) or infinite (2)".
std::string amount(const auto& counts, const char* what, const char* verb) {
  std::string out =
      fmt::format("{} of {} {} {}", grouped(counts.lost()), grouped(counts.of), what, verb);
  if (counts.nan > 0 && counts.infinite > 0)
    return out +
           fmt::format("NaN ({}) or infinite ({})", grouped(counts.nan), grouped(counts.infinite));
  return out + (counts.nan > 0 ? "NaN" : "infinite");
}

}  // namespace

bool is_not_finite(const Row& row) {
  return row.not_finite.has_value() || (!row.not_finite.written() && row.metrics.loss.is_null);
}

std::vector<std::string> not_finite_sentences(const Row& row) {
  std::vector<std::string> out;
  if (!is_not_finite(row)) return out;
  const LostNumbers* const counts = row.not_finite ? row.not_finite->counted() : nullptr;
  if (!counts) return {"outputs are NaN or infinite (the row does not count them)"};
  const std::string samples = fmt::format("{} {} samples", grouped(counts->samples),
                                          row.not_finite->test ? "test" : "calibration");
  if (counts->outputs.lost() > 0) {
    out.push_back(fmt::format("{} ({})", amount(counts->outputs, "outputs", "are "), samples));
  } else {
    out.push_back(fmt::format("the outputs are finite, results of layers are not ({})", samples));
  }
  std::vector<std::string> carried;
  for (const LostLayer& layer : counts->layers) {
    if (layer.inherited >= layer.lost()) {
      carried.push_back(layer.name);
      continue;
    }
    out.push_back(fmt::format("{}: {}: {}", layer.name, amount(layer, "results", ""),
                              joined(layer.causes, ", ")));
  }
  if (!carried.empty()) out.push_back("passed on by " + joined(carried, ", "));
  return out;
}

double not_finite_results(const Row& row, const std::string& name) {
  std::int64_t most = 0;
  if (!row.not_finite) return 0;
  for (const Member<LostNumbers>* const pass :
       {&row.not_finite->test, &row.not_finite->reference}) {
    if (!*pass) continue;
    for (const LostLayer& layer : (*pass)->layers) {
      if (layer.name == name) most = std::max(most, layer.lost());
    }
  }
  return static_cast<double>(most);
}

}  // namespace numemu::experiments

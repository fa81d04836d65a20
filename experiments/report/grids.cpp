// Grids come from the formats themselves, never from the rows.
#include "experiments/report/grids.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "formats/error.hpp"
#include "formats/format.hpp"

namespace numemu::experiments {
namespace {

/// Beyond 10 bits the lines of a grid touch each other on any screen.
constexpr int kDrawableBits = 10;

bool drawable(const Json& tensor) {
  const auto low = json_number(tensor, {"low"}), high = json_number(tensor, {"high"});
  const auto absmax = json_number(tensor, {"absmax"});
  const Json* counts = json_at(tensor, {"counts"});
  if (!low || !high || !absmax || !(*low < *high) || !(*absmax > 0)) return false;
  if (!counts || !counts->is_array() || counts->empty()) return false;
  return std::all_of(counts->begin(), counts->end(), [](const Json& c) { return c.is_number(); });
}

}  // namespace

std::vector<SweptFormat> swept_formats(const std::vector<Record>& records) {
  std::set<std::string> names;
  for (const Record& r : records) {
    for (const RoleRecord* role :
         {&r.weight, &r.activation, &r.layer_weight, &r.layer_activation}) {
      if (role->quantized && role->bits && *role->bits <= kDrawableBits)
        names.insert(role->element.empty() ? role->format : role->element);
    }
  }
  std::vector<SweptFormat> out;
  for (const std::string& name : names) {
    const Format& format = find_format(name);
    out.push_back({name, format.kind == Kind::floating ? "float" : "int", format.bits,
                   finite_values(format), largest_value(format)});
  }
  std::sort(out.begin(), out.end(), [](const SweptFormat& a, const SweptFormat& b) {
    return std::tie(a.family, a.bits, a.name) < std::tie(b.family, b.bits, b.name);
  });
  return out;
}

Json grid_records(const std::vector<SweptFormat>& formats) {
  Json out = Json::array();
  for (const SweptFormat& f : formats) {
    out.push_back({{"format", f.name},
                   {"family", f.family},
                   {"bits", f.bits},
                   {"values", f.values},
                   {"largest", f.largest}});
  }
  return out;
}

Json step_records(const std::vector<SweptFormat>& formats) {
  Json out = Json::array();
  for (const SweptFormat& f : formats) {
    for (std::size_t i = 1; i < f.values.size(); ++i) {
      const double value = f.values[i];
      if (value <= 0) continue;
      const double step =
          i + 1 < f.values.size() ? f.values[i + 1] - value : value - f.values[i - 1];
      out.push_back({{"format", short_format(f.name)},
                     {"family", f.family},
                     {"bits", f.bits},
                     {"value", value / f.largest},
                     {"step", 100 * step / value}});
    }
  }
  return out;
}

Json valid_histograms(const Json& tensors) {
  Json out = Json::array();
  if (!tensors.is_array()) return out;
  for (const Json& tensor : tensors) {
    if (drawable(tensor)) out.push_back(tensor);
  }
  return out;
}

}  // namespace numemu::experiments

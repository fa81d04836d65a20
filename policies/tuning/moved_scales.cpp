// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/moved_scales.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::policies {
namespace {

constexpr char kReal[] = "real", kPowersOfTwo[] = "powers_of_two";

constexpr std::size_t kReasons = 2;  // that a line names

/// Why links stay, each reason once: the first ones, and how many more there are.
std::string reasons(const std::vector<ScaledLink>& links) {
  std::vector<std::string> all;
  for (const ScaledLink& link : links)
    if (!link.refused.empty() && std::find(all.begin(), all.end(), link.refused) == all.end())
      all.push_back(link.refused);
  const std::size_t more = all.size() > kReasons ? all.size() - kReasons : 0;
  all.resize(all.size() - more);
  return fmt::format("{}{}", joined(all, "; "),
                     more > 0 ? fmt::format("; and {} more such links", more) : "");
}

bool in(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

}  // namespace

Option scale_steps_option(std::string& scales) {
  return {"scales", "powers_of_two: results in float32 keep every bit; real: within rounding",
          &scales,  0,
          0,        {kReal, kPowersOfTwo}};
}

ScaleSteps scale_steps(std::string_view scales) {
  return scales == kPowersOfTwo ? ScaleSteps::powers_of_two : ScaleSteps::real;
}

void forget_moved_ranges(Tuning& tuning, std::string_view step,
                         const std::vector<ScaledLink>& links) {
  if (std::all_of(links.begin(), links.end(), [](const auto& l) { return !l.refused.empty(); }))
    throw Error(fmt::format("{}: step {}: no scales can be moved: {}", tuning.where, step,
                            links.empty() ? "no layer multiplies by a weight" : reasons(links)));
  for (auto& [layer, ranges] : tuning.ranges) {
    for (const ScaledLink& link : links) {
      if (!link.refused.empty()) continue;
      const bool reads = in(link.consumers, layer);
      if (reads) ranges.activation.reset();
      if (reads || link.producer == layer) ranges.weight.clear();
    }
  }
  std::erase_if(tuning.ranges, [](const auto& entry) { return entry.second.empty(); });
  complete_ranges(tuning);
}

std::string summary_of(const std::vector<ScaledLink>& links) {
  double least = 1, most = 1;
  std::size_t scaled = 0;
  for (const ScaledLink& link : links) {
    if (!link.refused.empty()) continue;
    ++scaled;
    least = std::min(least, link.least);
    most = std::max(most, link.most);
  }
  std::string text =
      fmt::format("{} of {} links scaled by {:.3g} to {:.3g}", scaled, links.size(), least, most);
  if (scaled < links.size()) text += "; as they were: " + reasons(links);
  return text;
}

}  // namespace numemu::policies

// What configurations lose, which of them answer a sweep, and how lists name them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/engine/judge.hpp"
#include "experiments/report/findings.hpp"

namespace numemu::experiments {
namespace {

/// What a configuration lost, in its own measure.
std::optional<double> loss_of(const Record& r) {
  if (r.bits_per_character) return r.bits_change();
  return r.difference ? std::optional(-*r.difference) : std::nullopt;
}

/// Points that lose more are no answer, unless all do.
constexpr double kHopeless = 0.1, kHopelessRise = 0.5;

bool is_hopeless(const Record& r) {
  return *loss_of(r) > (r.bits_per_character ? kHopelessRise : kHopeless);
}

}  // namespace

std::optional<Verdict> loses_little(const Record& r) {
  const std::optional<double> loss = loss_of(r);
  if (!r.quantized() || !loss) return std::nullopt;
  const auto less_than = [](double limit) { return at_most(std::nextafter(limit, 0)); };
  if (r.bits_per_character) return verdict_on({*loss, *loss}, less_than(kSmallRise));
  if (!r.difference_low || !r.difference_high) return Verdict::undecided;
  return verdict_on({-*r.difference_high, -*r.difference_low}, less_than(kSmallLoss));
}

const Record* find_baseline(const std::vector<Record>& records, const Record& of) {
  const Record* any_seed = nullptr;
  for (const Record& r : records) {
    if (r.quantized() || r.net != of.net || r.data != of.data) continue;
    if (r.seed == of.seed) return &r;
    if (!any_seed) any_seed = &r;
  }
  return any_seed;
}

const Record* cheapest_safe(const std::vector<Record>& records) {
  const Record* best = nullptr;
  for (const Record& r : records) {
    if (loses_little(r) != Verdict::holds || !r.mean_bits()) continue;
    if (!best || *r.mean_bits() < *best->mean_bits() ||
        (*r.mean_bits() == *best->mean_bits() && *loss_of(r) < *loss_of(*best)))
      best = &r;
  }
  return best;
}

std::vector<const Record*> best_points(const std::vector<Record>& records, std::size_t most) {
  std::vector<const Record*> sorted, front;
  for (const Record& r : records) {
    if (r.quantized() && r.mean_bits() && loss_of(r)) sorted.push_back(&r);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Record* a, const Record* b) {
    return *a->mean_bits() != *b->mean_bits() ? *a->mean_bits() < *b->mean_bits()
                                              : *loss_of(*a) < *loss_of(*b);
  });
  for (const Record* r : sorted) {
    if (front.empty() || *loss_of(*r) < *loss_of(*front.back())) front.push_back(r);
  }
  // The safe one belongs to the answer also where a luckier one has fewer bits.
  if (const Record* safe = cheapest_safe(records);
      safe && std::find(front.begin(), front.end(), safe) == front.end()) {
    front.insert(std::upper_bound(front.begin(), front.end(), safe,
                                  [](const Record* a, const Record* b) {
                                    return *a->mean_bits() < *b->mean_bits();
                                  }),
                 safe);
  }
  const auto good =
      std::find_if(front.begin(), front.end(), [](const Record* r) { return !is_hopeless(*r); });
  if (good != front.end()) front.erase(front.begin(), good);
  if (front.size() > most) front.erase(front.begin(), front.end() - static_cast<long>(most));
  return front;
}

std::vector<std::string> labels_by_loss(const std::vector<Record>& records, Verdict wanted) {
  // label -> rows, of them wanted
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  std::size_t units = 1;
  for (const Record& r : records) {
    const std::optional<Verdict> own = loses_little(r);
    if (!own) continue;
    ++counts[r.label].first;
    counts[r.label].second += own == wanted;
    units = std::max(units, counts[r.label].first);
  }
  std::vector<std::string> out;
  for (const Record& r : records) {
    if (loses_little(r) != wanted) continue;
    const auto [rows, same] = counts.at(r.label);
    const bool every = rows == units || rows == 1;
    const std::string name = same < rows ? r.name
                             : every     ? r.label
                                         : fmt::format("{} ({} units)", r.label, rows);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

std::vector<SharedNote> shared_notes(const std::vector<Record>& records) {
  std::vector<SharedNote> out;
  for (const Record& r : records) {
    for (const std::string& note : r.notes) {
      const auto found =
          std::find_if(out.begin(), out.end(), [&](const SharedNote& n) { return n.text == note; });
      if (found == out.end()) {
        out.push_back({note, {r.name}});
      } else {
        found->names.push_back(r.name);
      }
    }
  }
  return out;
}

std::string listed_names(const std::vector<std::string>& names, std::size_t most) {
  // One more costs no more room than saying that there is one.
  const std::size_t shown = names.size() <= most + 1 ? names.size() : most;
  std::string out =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

}  // namespace numemu::experiments

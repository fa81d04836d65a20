#include "emu/oracle/identify.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "emu/oracle/candidates.hpp"
#include "emu/oracle/rival.hpp"
#include "emu/oracle/step_map.hpp"
#include "emu/oracle/summation_tree.hpp"

namespace numemu::oracle {
namespace {

using unit::UnitDescription;

constexpr std::size_t kBlock = 96;        ///< questions that are compared at a time
constexpr std::size_t kRandomPool = 240;  ///< beside the constructed questions
constexpr std::size_t kFirst = 48;        ///< asked at least before a search
constexpr std::size_t kRepeated = 8;
constexpr int kSearches = 4;       ///< that may fail
constexpr int kMostSearches = 12;  ///< that found what later answers refuted

/// All questions in an order in which every block has some of each kind.
std::vector<Question> pool_of(const Ports& ports, std::uint64_t seed) {
  std::vector<Question> all = constructed_questions(ports);
  for (Question& question : random_questions(ports, seed, 0, kRandomPool))
    all.push_back(std::move(question));
  std::vector<Question> mixed;
  mixed.reserve(all.size());
  const std::size_t blocks = (all.size() + kBlock - 1) / kBlock;
  for (std::size_t first = 0; first < blocks; ++first) {
    for (std::size_t i = first; i < all.size(); i += blocks) mixed.push_back(std::move(all[i]));
  }
  return mixed;
}

bool same_but_nan(UnitDescription u, const UnitDescription& other) {
  u.nan = other.nan;
  u.nan_code = other.nan_code;
  return same_rule(u, other);
}

/// By the variant of the step map that tells the most steps apart.
std::vector<int> steps_of_unit(const UnitDescription& u, const Ports& ports) {
  constexpr int kMostPositions = 64;  // as many dots as pairs of them
  std::vector<int> best;
  if (ports.kept() > kMostPositions) return best;
  const auto count = [](const std::vector<int>& steps) {
    return steps.empty() ? -1 : *std::max_element(steps.begin(), steps.end());
  };
  for (const StepVariant variant : kStepVariants) {
    const std::vector<Dot> dots = step_map_dots(ports, variant);
    if (dots.empty()) continue;
    std::vector<int> steps = steps_of(read_step_map(ports, variant, evaluate(u, ports, dots)));
    if (count(steps) > count(best)) best = std::move(steps);
  }
  return best;
}

class Identification {
 public:
  Identification(const Ports& ports, const Device* device, const IdentifyOptions& options)
      : ports_(ports),
        device_(device),
        options_(options),
        pool_(pool_of(ports, options.seed)),
        evidence_(ports, options.any_nan) {
    for (const Question& question : pool_) pool_dots_.push_back(question.dot);
    if (options.catalogue) presets_ = presets(ports);
    for (const UnitDescription& u : presets_) start_.add(u);
    for (const UnitDescription& u : families(ports)) start_.add(u);
  }

  Finding run() {
    survivors_ = start_.all;
    int searches = 0;
    for (bool confirmed = false;;) {
      narrow();
      if (survivors_.empty()) {
        ask_more();
        add_blocks();
        survivors_ = search(evidence_, start_.all);
        ++searches;
        const std::size_t wrong = evidence_.contradictions(survivors_.front(), evidence_.size());
        if (wrong == 0) {
          if (searches > kMostSearches) break;
          continue;
        }
        const bool hopeless = searches > 1 && wrong > evidence_.size() / 8;
        if (searches >= kSearches || hopeless) return nothing_fits();
        survivors_.clear();
        continue;
      }
      // What is left agrees on the whole pool: its neighbours come next.
      if (add_neighbours()) continue;
      if (confirmed) break;
      for (const Question& question :
           random_questions(ports_, options_.seed + 1, 0, options_.confirmations))
        ask(question);
      confirmed = true;
      if (evidence_.agrees(survivors_.front())) break;
    }
    if (inconsistent()) return nothing_fits();
    return finding();
  }

  Finding judge(const std::vector<Answered>& records) {
    for (const Answered& record : records) note(record.question, record.code);
    survivors_ = start_.all;
    keep_agreeing();
    if (survivors_.empty()) survivors_ = search(evidence_, start_.all);
    if (!evidence_.agrees(survivors_.front())) return nothing_fits();
    return finding();
  }

 private:
  void note(const Question& question, std::uint64_t code) {
    finding_.answered.push_back({question, code});
    evidence_.add(question.dot, code);
  }
  void ask(const Question& question) { note(question, (*device_)(question.dot)); }

  void keep_agreeing() {
    std::erase_if(survivors_, [&](const UnitDescription& u) { return !evidence_.agrees(u); });
  }

  /// Asks from the pool what splits the survivors best, until they agree on all of it or none is
  /// left.
  void narrow() {
    for (std::size_t first = 0; first < pool_.size() && survivors_.size() > 1; first += kBlock)
      narrow(first, std::min(kBlock, pool_.size() - first));
    if (survivors_.size() == 1 && evidence_.size() == 0) ask_more();
    keep_agreeing();
  }

  void narrow(std::size_t first, std::size_t count) {
    const auto dots = std::span(pool_dots_).subspan(first, count);
    std::vector<std::vector<std::uint64_t>> results(survivors_.size());
#pragma omp parallel for schedule(dynamic) if (survivors_.size() > 32)
    for (std::size_t i = 0; i < survivors_.size(); ++i)
      results[i] = evaluate(survivors_[i], ports_, dots);
    std::vector<std::size_t> left(survivors_.size());
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
    while (left.size() > 1) {
      const auto best = best_split(results, left, count);
      if (best.second == left.size()) break;
      ask(pool_[first + best.first]);
      const std::uint64_t code = finding_.answered.back().code;
      std::erase_if(left,
                    [&](std::size_t i) { return !evidence_.same(results[i][best.first], code); });
    }
    std::vector<UnitDescription> kept;
    for (const std::size_t i : left) kept.push_back(std::move(survivors_[i]));
    survivors_ = std::move(kept);
  }

  /// The question whose most frequent answer is the least frequent, and how often that is.
  std::pair<std::size_t, std::size_t> best_split(
      const std::vector<std::vector<std::uint64_t>>& results, const std::vector<std::size_t>& left,
      std::size_t count) const {
    std::pair<std::size_t, std::size_t> best{0, left.size()};
    std::map<std::uint64_t, std::size_t> classes;
    for (std::size_t q = 0; q < count; ++q) {
      classes.clear();
      std::size_t largest = 0;
      for (const std::size_t i : left) largest = std::max(largest, ++classes[results[i][q]]);
      const bool only_nans = largest < left.size() && all_same(classes);
      if (largest < best.second && !only_nans) best = {q, largest};
    }
    return best;
  }

  bool all_same(const std::map<std::uint64_t, std::size_t>& classes) const {
    return std::all_of(classes.begin(), classes.end(), [&](const auto& one) {
      return evidence_.same(one.first, classes.begin()->first);
    });
  }

  /// Questions spread over the pool, so that a search has something to compare.
  void ask_more() {
    const std::size_t stride = std::max<std::size_t>(pool_.size() / kFirst, 1);
    for (std::size_t i = spread_++; i < pool_.size(); i += stride) ask(pool_[i]);
  }

  /// Once: if the order of the sum shows blocks, descriptions with blocks of that size.
  void add_blocks() {
    if (std::exchange(order_read_, true) || ports_.d == nullptr) return;
    const auto order = read_summation_tree(ports_, *device_);
    const int block = order ? block_of(*order) : 0;
    if (block == 0) return;
    for (UnitDescription& u : in_blocks(std::vector(start_.all), block)) start_.add(std::move(u));
  }

  /// Adds the patches of the first survivor that no answer contradicts yet; false if there is none
  /// that some question could tell apart from it.
  bool add_neighbours() {
    if (!expanded_.add(survivors_.front())) return false;
    bool more = false;
    for (Rival& patch : patches_of(survivors_.front())) {
      if (!fits(patch.description, ports_) || !evidence_.agrees(patch.description)) continue;
      survivors_.push_back(std::move(patch.description));
      survivors_.back().name = "found";
      more = true;
    }
    return more;
  }

  bool inconsistent() {
    for (std::size_t i = 0; i < std::min(kRepeated, finding_.answered.size()); ++i) {
      const std::size_t at = i * finding_.answered.size() / kRepeated % finding_.answered.size();
      const Answered& old = finding_.answered[at];
      if ((*device_)(old.question.dot) == old.code) continue;
      finding_.inconsistent = at;
      return true;
    }
    return false;
  }

  Finding nothing_fits() {
    if (survivors_.empty()) survivors_ = search(evidence_, start_.all);
    finding_.description = survivors_.front();
    finding_.contradictions = evidence_.contradictions(finding_.description, evidence_.size());
    finding_.contradiction = evidence_.first_contradiction(finding_.description);
    if (finding_.contradictions != 0) {
      const Dot& dot = finding_.answered[finding_.contradiction].question.dot;
      finding_.expected = evaluate(finding_.description, ports_, {&dot, 1}).front();
    }
    return std::move(finding_);
  }

  Finding finding() {
    finding_.fits = true;
    finding_.description = survivors_.front();
    finding_.tried = pool_.size();
    for (const UnitDescription& u : presets_) {
      if (evidence_.agrees(u)) finding_.presets.push_back(u.name);
    }
    const auto own = evaluate(finding_.description, ports_, pool_dots_);
    if (finding_.presets.empty()) {
      // Of rules with the same results the plainest.
      for (const UnitDescription& u : search(evidence_, start_.all)) {
        if (plainer(u, finding_.description) && evidence_.agrees(u) &&
            gives(u, ports_, pool_dots_, own))
          finding_.description = u;
      }
    }
    finding_.steps = steps_of_unit(finding_.description, ports_);
    for (const Rival& patch : patches_of(finding_.description)) {
      const UnitDescription& u = patch.description;
      if (!fits(u, ports_) || !evidence_.agrees(u)) continue;
      if (options_.any_nan && same_but_nan(u, finding_.description)) continue;
      const auto other = evaluate(u, ports_, pool_dots_);
      std::size_t q = 0;
      while (q < own.size() && evidence_.same(own[q], other[q])) ++q;
      finding_.undetermined.push_back(
          {patch.name, q < own.size() ? std::optional(pool_[q].dot) : std::nullopt});
    }
    return std::move(finding_);
  }

  const Ports& ports_;
  const Device* device_;
  const IdentifyOptions& options_;
  std::vector<Question> pool_;
  std::vector<Dot> pool_dots_;
  Evidence evidence_;
  std::vector<UnitDescription> presets_, survivors_;
  Candidates start_, expanded_;
  std::size_t spread_ = 0;
  bool order_read_ = false;
  Finding finding_;
};

}  // namespace

Finding identify(const Ports& ports, const Device& device, const IdentifyOptions& options) {
  return Identification(ports, &device, options).run();
}

Finding identify(const Ports& ports, const std::vector<Answered>& records,
                 const IdentifyOptions& options) {
  return Identification(ports, nullptr, options).judge(records);
}

}  // namespace numemu::oracle

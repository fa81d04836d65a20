#include "emu/oracle/identify/identify.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "emu/oracle/generator.hpp"
#include "emu/oracle/identify/candidates.hpp"
#include "emu/oracle/identify/protocol.hpp"
#include "emu/oracle/identify/summation_tree.hpp"

namespace numemu::oracle {
namespace {

using unit::UnitDescription;

constexpr std::size_t kBlock = 96;  ///< questions that are compared at a time
constexpr std::size_t kFirst = 48;  ///< asked at least before a search
constexpr std::size_t kRepeated = 8;
constexpr std::size_t kSearched = 256;  ///< answers that a search begins with
constexpr std::size_t kGuess = 400;     ///< questions before the confirmations, as progress counts
constexpr int kSearches = 4;            ///< that may fail
constexpr int kMostSearches = 12;       ///< that found what later answers refuted

bool same_but_nan(UnitDescription u, const UnitDescription& other) {
  u.nan = other.nan;
  u.nan_code = other.nan_code;
  return same_rule(u, other);
}

class Identifier {
 public:
  Identifier(const Ports& ports, const Device* device, const IdentifyOptions& options)
      : ports_(ports),
        device_(device),
        options_(options),
        pool_(options.pool.empty() ? question_pool(ports, options.seed, kBlock) : options.pool),
        evidence_(ports, options.any_nan) {
    for (const AskedDot& question : pool_) pool_dots_.push_back(question.dot);
    if (options.catalogue) presets_ = presets(ports);
    for (const UnitDescription& u : options.units) {
      if (fits(u, ports)) presets_.push_back(u);
    }
    for (const UnitDescription& u : presets_) start_.add(u);
    for (const UnitDescription& u : families(ports)) start_.add(u);
  }

  FoundRule run() {
    survivors_ = start_.all;
    int searches = 0;
    while (!too_late() && finding_.reproducible) {
      narrow();
      if (survivors_.empty()) {
        if (!finding_.answered.empty() && ask_again(finding_.answered.size() - 1)) {
          begin_again();
          continue;
        }
        ask_more();
        if (find_lost_products()) {
          begin_again();
          continue;
        }
        add_blocks();
        survivors_ = search_answers(evidence_);
        ++searches;
        const auto wrong = evidence_.contradicted(survivors_.front(), evidence_.size());
        if (wrong.empty()) {
          if (searches > kMostSearches) break;
          continue;
        }
        bool changed = false;
        for (const std::size_t at : std::span(wrong).first(std::min(kRepeated, wrong.size())))
          changed = ask_again(at) || changed;
        const bool hopeless = searches > 1 && wrong.size() > evidence_.size() / 8;
        if (searches >= kSearches || (hopeless && !changed)) return nothing_fits();
        survivors_.clear();
        if (changed) begin_again();
        continue;
      }
      // What is left agrees on the whole pool: its neighbours come next.
      if (add_neighbours()) continue;
      if (confirm(true)) break;
    }
    const bool found = !survivors_.empty() && finding_.reproducible &&
                       evidence_.agrees(survivors_.front()) &&
                       (confirmed_ || finding_.confirmed > 0);
    if (!found) return nothing_fits();
    if (!finding_.too_late) repeat_some();
    return finding_.changes == 0 && finding_.lost.empty() ? finding() : nothing_fits();
  }

  FoundRule judge(const std::vector<Answered>& records) {
    for (const Answered& record : records) note(record.question, record.code);
    find_contradictory_records();
    const std::vector<std::size_t> some = spread();
    const Evidence part = evidence_.part(some);
    std::set<std::size_t> searched(some.begin(), some.end());
    survivors_ = start_.all;
    std::erase_if(survivors_, [&](const UnitDescription& u) {
      if (!part.agrees(u)) return true;
      const auto wrong = evidence_.contradicted(u, 1);
      searched.insert(wrong.begin(), wrong.end());
      return !wrong.empty();
    });
    searched_ = searched.size();
    if (survivors_.empty()) survivors_ = search_answers(evidence_);
    if (!evidence_.agrees(survivors_.front())) return nothing_fits();
    return finding();
  }

 private:
  /// What the unit sees of a dot.
  Dot seen(const Dot& dot) const { return without_products(dot, finding_.lost); }
  void note(const AskedDot& question, std::uint64_t code) {
    finding_.answered.push_back({question, code});
    evidence_.add(seen(question.dot), code);
  }
  void ask(const AskedDot& question) {
    note(question, (*device_)(question.dot));
    if (options_.on_progress) options_.on_progress("questions", finding_.answered.size(), kGuess);
  }

  bool too_late() {
    finding_.too_late = finding_.too_late || (options_.stop && options_.stop());
    return finding_.too_late;
  }

  /// The answer of the unit to a question that it was asked before; true where it is another one.
  bool changes(const Dot& dot, std::uint64_t first) {
    const std::uint64_t again = (*device_)(dot);
    if (evidence_.same(again, first)) return false;
    if (!finding_.changed) finding_.changed = {dot, first, again};
    ++finding_.changes;
    // A unit with faults now and then can be told; what answers at random cannot.
    finding_.reproducible =
        finding_.changes <=
        std::max<std::size_t>(2, (finding_.answered.size() + finding_.confirmed) / 16);
    return true;
  }

  /// Asks question `at` once more; true where the answer changed. Then the one counts that comes
  /// twice of three times, or the last.
  bool ask_again(std::size_t at) {
    const Dot& dot = finding_.answered[at].question.dot;
    const std::uint64_t first = finding_.answered[at].code;
    if (device_ == nullptr || !changes(dot, first)) return false;
    // The first change: others tell whether it is noise or the rule of this device.
    if (finding_.changes == 1) {
      for (std::size_t i = at - std::min(kRepeated, at); i < at && finding_.reproducible; ++i)
        changes(finding_.answered[i].question.dot, finding_.answered[i].code);
    }
    finding_.answered[at].code = (*device_)(dot);
    evidence_.replace(at, finding_.answered[at].code);
    return true;
  }

  void begin_again() {
    survivors_ = start_.all;
    keep_agreeing();
  }

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

  /// The positions of some answers among all; of records at most half, so that others confirm.
  std::vector<std::size_t> spread() const {
    const std::size_t most =
        device_ != nullptr ? kSearched : std::min(kSearched, (evidence_.size() + 1) / 2);
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < evidence_.size(); i += (evidence_.size() - 1) / most + 1)
      some.push_back(i);
    return some;
  }

  /// Searches what a few answers leave, and adds those that refute it: most tell nothing new.
  std::vector<UnitDescription> search_answers(const Evidence& evidence) {
    std::vector<std::size_t> some = spread();
    for (;;) {
      std::vector<UnitDescription> found = search(evidence.part(some), start_.all, options_.stop);
      searched_ = some.size();
      std::vector<UnitDescription> agreeing;
      for (const UnitDescription& u : found) {
        if (evidence.agrees(u)) agreeing.push_back(u);
      }
      if (!agreeing.empty()) return agreeing;
      const auto wrong = evidence.contradicted(found.front(), kSearched / 8);
      const std::size_t before = some.size();
      for (const std::size_t at : wrong) {
        if (std::ranges::find(some, at) == some.end()) some.push_back(at);
      }
      if (before == some.size() || too_late() || some.size() > 3 * kSearched) return found;
    }
  }

  /// Calls `see` with mixed vectors of a rule, in pieces, until `see` returns false.
  void mixed_vectors(
      UnitDescription u, std::size_t count,
      const std::function<bool(const Records&, const std::vector<Dot>&)>& see) const {
    constexpr std::size_t kPiece = 256;
    u.name = "found";
    const auto own = unit::make_unit(u);
    Subject subject = unit_subject(*own, ports_.k, ports_.a, ports_.b);
    subject.seed = options_.seed;
    const Generator generator(subject);
    for (std::size_t first = 0; first < count; first += kPiece) {
      Records records(generator.layout(),
                      static_cast<std::int64_t>(std::min(kPiece, count - first)));
      generator.fill(static_cast<std::int64_t>(first), records);
      std::vector<Dot> dots;
      for (std::int64_t i = 0; i < records.size; ++i) dots.push_back(dot_of(ports_, records, i));
      if (!see(records, dots)) return;
    }
  }

  /// Whether a rule gives what `found` gives of the mixed vectors that confirmed it.
  bool gives_confirmed(const UnitDescription& u, const UnitDescription& found) const {
    bool same = true;
    mixed_vectors(found, finding_.confirmed, [&](const Records&, const std::vector<Dot>& dots) {
      return same = gives(u, ports_, dots, evaluate(found, ports_, dots));
    });
    return same;
  }

  /// Of rules with the results of `found` for every question, and for the vectors that confirmed
  /// it, the plainest. The results count, not the answers, of which some may be noise.
  UnitDescription plainest(const UnitDescription& found) {
    const Evidence by_rule = evidence_.answered_by(found);
    const auto own = evaluate(found, ports_, pool_dots_);
    UnitDescription best = found;
    for (const UnitDescription& u : search_answers(by_rule)) {
      if (plainer(u, best) && by_rule.agrees(u) && gives(u, ports_, pool_dots_, own) &&
          gives_confirmed(u, found))
        best = u;
    }
    return best;
  }

  /// Asks mixed vectors of the first survivor. False where one refutes it and `searching` wants to
  /// know; else those that differ are counted, until more of them are steady than noise explains.
  bool confirm(bool searching) {
    const UnitDescription u = survivors_.front();
    forget_confirmations();
    bool refuted = false, late = false;
    mixed_vectors(
        u, options_.confirmations, [&](const Records& records, const std::vector<Dot>& dots) {
          const auto expected = evaluate(u, ports_, dots);
          std::vector<Dot> without;
          for (const Dot& dot : dots) without.push_back(seen(dot));
          const auto of_seen = finding_.lost.empty() ? expected : evaluate(u, ports_, without);
          for (std::size_t i = 0; i < dots.size() && finding_.reproducible; ++i) {
            if ((late = too_late())) return false;
            const Dot& dot = dots[i];
            const std::uint64_t code = (*device_)(dot);
            ++finding_.confirmed;
            if (options_.on_progress)
              options_.on_progress("confirmations", finding_.confirmed, options_.confirmations);
            if (!evidence_.same(code, expected[i])) ++finding_.differing;
            if (evidence_.same(code, of_seen[i]) || changes(dot, code)) continue;
            if (searching || ++finding_.steady == 1)
              note({std::string(records.class_name(static_cast<std::int64_t>(i))), dot}, code);
            refuted = searching;
            if (refuted || !noise_explains()) return false;
          }
          return finding_.reproducible;
        });
    if (refuted) {
      survivors_.clear();
      forget_confirmations();  // of a rule that is none
    }
    if (refuted || late) return !refuted;
    confirmed_ = true;
    return true;
  }

  void forget_confirmations() {
    finding_.confirmed = finding_.differing = finding_.steady = 0;
    confirmed_ = false;
  }

  /// Some have the same noise twice.
  bool noise_explains() const {
    return finding_.steady <= kRepeated || 4 * finding_.steady <= finding_.changes;
  }

  /// Once: dead lanes. What they lose is no part of any question from then on.
  bool find_lost_products() {
    if (std::exchange(lanes_read_, true)) return false;
    finding_.lost = lost_products(ports_, *device_);
    if (finding_.lost.empty()) return false;
    evidence_.drop_products(finding_.lost);
    for (Dot& dot : pool_dots_) dot = seen(dot);
    return true;
  }

  /// Of records: questions with two answers, which no rule gives.
  void find_contradictory_records() {
    const auto& all = finding_.answered;
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto dot = [&](std::size_t i) -> const Dot& { return all[i].question.dot; };
    std::ranges::stable_sort(order, {}, dot);
    for (std::size_t first = 0, i = 1; i < order.size(); ++i) {
      const std::size_t x = order[first], y = order[i];
      if (dot(x) != dot(y)) {
        first = i;
        continue;
      }
      if (evidence_.same(all[x].code, all[y].code)) continue;
      if (!finding_.changed || x < finding_.changed->first_record)
        finding_.changed = {dot(x), all[x].code, all[y].code, x, y};
      ++finding_.changes;
    }
    finding_.reproducible = finding_.changes == 0;
  }

  /// Some early questions again, after all others.
  void repeat_some() {
    for (std::size_t i = 0; i < std::min(kRepeated, finding_.answered.size()); ++i) {
      const std::size_t at = i * finding_.answered.size() / kRepeated % finding_.answered.size();
      changes(finding_.answered[at].question.dot, finding_.answered[at].code);
    }
  }

  FoundRule nothing_fits() {
    if (survivors_.empty()) survivors_ = search_answers(evidence_);
    finding_.description = survivors_.front();
    auto wrong = evidence_.contradicted(finding_.description, evidence_.size());
    const bool near = 2 * wrong.size() < evidence_.size();
    if (device_ != nullptr && finding_.reproducible) {
      if (near && !confirmed_ && !too_late()) confirm(false);
      wrong = evidence_.contradicted(finding_.description, evidence_.size());
      for (const std::size_t at : wrong) {
        if (!near || !noise_explains() || too_late() || !ask_again(at)) ++finding_.steady;
      }
      wrong = evidence_.contradicted(finding_.description, evidence_.size());
      if (!finding_.lost.empty()) name_presets();
      const bool named = std::ranges::any_of(
          presets_, [&](const UnitDescription& u) { return same_rule(u, finding_.description); });
      if (finding_.found_but() && !named) finding_.description = plainest(finding_.description);
    }
    finding_.contradictions = wrong.size();
    if (!wrong.empty()) {
      finding_.contradiction = wrong.front();
      const Dot dot = seen(finding_.answered[finding_.contradiction].question.dot);
      finding_.expected = evaluate(finding_.description, ports_, {&dot, 1}).front();
    }
    return std::move(finding_);
  }

  void name_presets() {
    for (const UnitDescription& u : presets_) {
      if (evidence_.agrees(u)) finding_.presets.push_back(u.name);
    }
  }

  FoundRule finding() {
    finding_.fits = true;
    finding_.description = survivors_.front();
    finding_.tried = pool_.size();
    name_presets();
    const auto own = evaluate(finding_.description, ports_, pool_dots_);
    if (device_ == nullptr) {
      finding_.confirmed = evidence_.size() - searched_;
      finding_.decided = finding_.confirmed >= kFewestConfirming;
    }
    if (finding_.presets.empty() && device_ != nullptr)
      finding_.description = plainest(finding_.description);
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
  std::vector<AskedDot> pool_;
  std::vector<Dot> pool_dots_;
  Evidence evidence_;
  std::vector<UnitDescription> presets_, survivors_;
  Candidates start_, expanded_;
  std::size_t spread_ = 0, searched_ = 0;
  bool order_read_ = false, lanes_read_ = false, confirmed_ = false;
  FoundRule finding_;
};

}  // namespace

FoundRule identify(const Ports& ports, const Device& device, const IdentifyOptions& options) {
  return Identifier(ports, &device, options).run();
}

FoundRule identify(const Ports& ports, const std::vector<Answered>& records,
                   const IdentifyOptions& options) {
  return Identifier(ports, nullptr, options).judge(records);
}

}  // namespace numemu::oracle

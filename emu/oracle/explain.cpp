#include "emu/oracle/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "emu/oracle/codes_of_sums.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/unit/reference/divergence.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::oracle {

namespace {

std::string number(Value v) {
  const bool sticky = v.sticky;
  v.sticky = false;
  return hex_text(v) + (sticky ? "+" : "");
}

/// The first addend of the two steps that parts them, where they are steps of the same products.
std::string first_addend(const unit::Divergence& d) {
  if (!d.in_sum) return "";
  const unit::TraceStep &mine = d.first.trace.steps[d.first.end - 1],
                        &its = d.second.trace.steps[d.second.end - 1];
  if (mine.what != its.what) return "";
  for (std::size_t t = 0; t < std::min(mine.terms.size(), its.terms.size()); ++t) {
    const unit::TraceTerm &x = mine.terms[t], &y = its.terms[t];
    if (x.k == y.k && unit::same_number(x.kept, y.kept)) continue;
    return fmt::format("{}{}: {} added, by the rule {}", x.what,
                       x.k < 0 ? "" : fmt::format(" of k {}", x.k), number(x.kept), number(y.kept));
  }
  return "";
}

std::vector<std::string> of_unit(const Subject& s, const Records& one, const Rule* rule) {
  std::vector<std::string> lines;
  if (s.codes) lines.push_back(epilogue_text(s, sum_record(s, one, 0)));
  if (rule == nullptr) return lines;
  if (rule->unit == nullptr || s.rounding.stochastic()) {
    lines.push_back("by the rule: " + rule->name);
    return lines;
  }
  UnitDot dot(s, layout_of(s));
  const unit::Divergence d = unit::find_divergence(
      *s.unit->description(), *rule->unit->description(), dot.gemm(one, 0), 0, 0);
  lines.push_back(unit::divergence_line(d));
  const std::string addend = first_addend(d);
  if (!addend.empty()) lines.push_back(addend);
  return lines;
}

/// "in 3f9a0000, "
std::string operands_text(const Layout& layout, const Records& one) {
  std::string text;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (!layout[f].result && layout[f].count == 1)
      text +=
          fmt::format("{} {:0{}x}, ", layout[f].name, one.columns[f][0], (layout[f].bits + 3) / 4);
  }
  return text;
}

/// Where the exact result lies between two neighbouring codes.
std::vector<std::string> of_operation(const Subject& s, const Records& one) {
  const Format& to = *s.to;
  const Value exact = exact_result(s, one, 0);
  std::string line = operands_text(layout_of(s), one) + "exact result " + number(exact);
  if (exact.kind != Class::finite) return {line};
  const auto code = [&](const Value& v, RoundingMode mode) {
    return encode(to, v, {.mode = mode}, Overflow::propagate);
  };
  const Encoded down = code(exact, RoundingMode::rtz);
  const RoundingMode outwards = exact.negative ? RoundingMode::rdn : RoundingMode::rup;
  const std::uint64_t away = code(exact, outwards).code;
  if (down.code == away || (down.flags & kInexact) == 0) return {line};
  // Slightly less and slightly more than the exact result.
  const int room = exact.sticky ? 0 : std::countl_zero(exact.significand);
  Value less = exact;
  less.significand <<= room;
  less.exponent -= room;
  less.sticky = true;
  Value more = less;
  if (!exact.sticky) --less.significand;
  const bool low = code(less, RoundingMode::rne).code == down.code;
  const bool high = code(more, RoundingMode::rne).code == away;
  const char* where = low && high ? "halfway between"
                      : low       ? "nearer to the first of"
                                  : "nearer to the second of";
  const int digits = (to.bits + 3) / 4;
  return {line + fmt::format(", {} {:0{}x} and {:0{}x}", where, down.code, digits, away, digits)};
}

}  // namespace

std::vector<std::string> parting(const Subject& s, const Records& one, const Rule* rule) {
  return s.unit != nullptr ? of_unit(s, one, rule) : of_operation(s, one);
}

namespace {

/// A rule is tried on all only if it explains one of these mismatches, and contradicts none of
/// these matches or explains more than half of those mismatches.
constexpr std::int64_t kSomeWrong = 64, kSomeRight = 256;
constexpr std::size_t kMostNamed = 3;
/// Of mismatches that a rule explains by chance there are few.
constexpr std::int64_t kLeastExplained = 8, kLeastPart = 64;
/// Of rules with the same results, those whose flags are looked at.
constexpr std::size_t kMostEqual = 8;

using Bits = std::vector<bool>;

std::int64_t count(const Bits& bits) { return std::count(bits.begin(), bits.end(), true); }

/// Which records a rule gives, results alone or with their flags.
struct Given {
  Bits results, both;
};

Given given_by(const Judge& v, const Rule& rule, const Sample& sample, const Rule& then = {}) {
  Given given{Bits(static_cast<std::size_t>(sample.size())), {}};
  given.both = given.results;
  if (sample.size() == 0) return given;  // its columns are not there
  Records computed;
  try {
    computed = predict(v.subject(), rule, sample.records, sample, then);
  } catch (const Error&) {
    return given;  // inputs that the rule changes to none
  }
  const std::vector<CodeComparison> compared = v.compare(computed, sample.records, true);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    given.both[i] = compared[i].mismatch == Mismatch::none;
    given.results[i] = given.both[i] || compared[i].mismatch == Mismatch::flags;
  }
  return given;
}

/// Mismatches and matches of one kind.
struct Task {
  Sample wrong, right, some_wrong, some_right;
};

Task task_of(const Layout& layout, Sample wrong, Sample right) {
  Task t{std::move(wrong), std::move(right), {}, {}};
  t.some_wrong = spread(layout, t.wrong, kSomeWrong);
  t.some_right = spread(layout, t.right, kSomeRight);
  return t;
}

struct Tried {
  Bits explains;  ///< empty: not tried on all
  std::int64_t contradicted = 0;
};

/// `give` says which records of a sample are given.
Tried tried(const Task& task, const std::function<Bits(const Sample&)>& give) {
  const std::int64_t explained = count(give(task.some_wrong));
  if (explained == 0) return {};
  const bool contradicted =
      task.some_right.size() != 0 && count(give(task.some_right)) != task.some_right.size();
  if (contradicted && 2 * explained <= task.some_wrong.size()) return {};
  Tried t{give(task.wrong), 0};
  if (task.right.size() != 0) t.contradicted = task.right.size() - count(give(task.right));
  return t;
}

/// The rules that fit, of those tried.
Account account_of(const Task& task, std::vector<Rule> rules, std::vector<Tried> results) {
  Account account{.rules = std::ssize(rules), .fits = {}, .nearest = {}};
  std::vector<Fit> fits;
  std::vector<Bits> explains;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (results[i].explains.empty()) continue;
    std::size_t same = 0;
    while (same < fits.size() && (fits[same].contradicted != results[i].contradicted ||
                                  explains[same] != results[i].explains))
      ++same;
    if (same < fits.size()) {
      fits[same].equal.push_back(std::move(rules[i]));
      continue;
    }
    fits.push_back({.rule = std::move(rules[i]),
                    .explained = count(results[i].explains),
                    .of = task.wrong.size(),
                    .contradicted = results[i].contradicted,
                    .against = task.right.size()});
    explains.push_back(std::move(results[i].explains));
  }
  Bits left(static_cast<std::size_t>(task.wrong.size()), true);
  while (count(left) != 0) {
    std::size_t best = fits.size();
    for (std::size_t f = 0; f < fits.size(); ++f) {
      fits[f].alone = 0;
      for (std::size_t i = 0; i < left.size(); ++i) fits[f].alone += explains[f][i] && left[i];
      if (fits[f].contradicted == 0 && (best == fits.size() || fits[f].alone > fits[best].alone))
        best = f;
    }
    const bool tells =
        best != fits.size() &&
        (fits[best].alone == fits[best].of ||
         (fits[best].alone >= kLeastExplained && kLeastPart * fits[best].alone >= fits[best].of));
    if (!tells || account.fits.size() == kMostNamed) {
      account.fits.clear();
      break;
    }
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = left[i] && !explains[best][i];
    account.fits.push_back(fits[best]);
  }
  const auto nearest = std::min_element(fits.begin(), fits.end(), [](const Fit& x, const Fit& y) {
    return x.not_given() < y.not_given();
  });
  if (account.fits.empty() && nearest != fits.end() && nearest->not_given() < nearest->of)
    account.nearest = *nearest;
  return account;
}

class Explainer {
 public:
  explicit Explainer(const Judge& v) : v_(v) {}

  Explanation explain(std::vector<Rule> more) {
    all_.mismatches = v_.wrong().size();
    all_.matches = v_.right().size();
    if (all_.mismatches == 0) return all_;
    rules_ = rules_of(v_.subject());
    std::move(more.begin(), more.end(), std::back_inserter(rules_));
    Sample wrong, right = v_.right();
    for (std::int64_t i = 0; i < v_.wrong().size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool result =
          v_.comparer()
              .compare(v_.wrong().want[at], v_.wrong().records.code(v_.result_field(), i))
              .mismatch != Mismatch::none;
      append_record(v_.layout(), v_.wrong(), i, result ? wrong : right);
    }
    all_.results = wrong.size();
    const Task task = task_of(v_.layout(), std::move(wrong), std::move(right));
    if (all_.results != 0) explain_results(task);
    if (v_.flags_field() >= 0) explain_flags(task);
    return all_;
  }

 private:
  void explain_results(const Task& task) {
    std::vector<Tried> results(rules_.size());
    for_each_part(rules_.size(), [&](std::size_t i) {
      results[i] = tried(task, [&](const Sample& s) { return given_by(v_, rules_[i], s).results; });
    });
    all_.of_results = account_of(task, rules_, std::move(results));
  }

  /// What the results are explained by: rules any of which may have made a record.
  using Base = std::vector<Rule>;

  /// The bases that explain the results alike.
  std::vector<Base> bases() const {
    const std::vector<Fit>& fits = all_.of_results.fits;
    if (fits.size() != 1) {
      Base base = {Rule{}};
      for (const Fit& fit : fits) base.push_back(fit.rule);
      return {base};
    }
    std::vector<Base> each = {{fits[0].rule}};
    for (std::size_t i = 0; i < std::min(fits[0].equal.size(), kMostEqual); ++i)
      each.push_back({fits[0].equal[i]});
    return each;
  }

  Bits with_flags(const Base& base, const Sample& sample, const Rule& then = {}) const {
    Bits any(static_cast<std::size_t>(sample.size()), false);
    for (const Rule& rule : base) {
      const Bits one = given_by(v_, rule, sample, then).both;
      for (std::size_t i = 0; i < any.size(); ++i) any[i] = any[i] || one[i];
    }
    return any;
  }

  void explain_flags(const Task& results) {
    // Where nothing explains the results, flags are those of right ones.
    Sample sample = results.right;
    for (std::int64_t i = 0; !all_.of_results.fits.empty() && i < results.wrong.size(); ++i)
      append_record(v_.layout(), results.wrong, i, sample);
    const std::vector<Base> options = bases();
    for (const Base& base : options) {
      const Bits right = with_flags(base, sample);
      if (count(right) == sample.size()) return name_with_flags(base);
    }
    const std::vector<Rule> flags = flag_rules(v_.subject());
    for (const Base& base : options) {
      const Bits right = with_flags(base, sample);
      Sample wrong, rest;
      for (std::int64_t i = 0; i < sample.size(); ++i)
        append_record(v_.layout(), sample, i, right[static_cast<std::size_t>(i)] ? rest : wrong);
      const Task task = task_of(v_.layout(), std::move(wrong), std::move(rest));
      std::vector<Tried> tries(flags.size());
      for_each_part(flags.size(), [&](std::size_t i) {
        tries[i] = tried(task, [&](const Sample& s) { return with_flags(base, s, flags[i]); });
      });
      Account account = account_of(task, flags, std::move(tries));
      const bool fits = account.fits.size() == 1;
      if (&base == &options.front() || fits) {
        all_.flags = task.wrong.size();
        all_.of_flags = std::move(account);
      }
      if (fits) return name(base);
      if (all_.results == 0 && by_a_rule_of_results(task)) return;
    }
  }

  /// Results that are right with flags that a rule of results gives.
  bool by_a_rule_of_results(const Task& task) {
    std::vector<Tried> tries(rules_.size());
    for_each_part(rules_.size(), [&](std::size_t i) {
      tries[i] = tried(task, [&](const Sample& s) { return with_flags({rules_[i]}, s); });
    });
    Account account = account_of(task, rules_, std::move(tries));
    if (account.fits.size() != 1) return false;
    all_.of_results = std::move(account);
    all_.of_flags = {};
    all_.flags = 0;
    return true;
  }

  /// The rule, of those that explain the results alike, is the one that is named.
  void name(const Base& base) {
    std::vector<Fit>& fits = all_.of_results.fits;
    if (fits.size() != 1 || base[0].name == fits[0].rule.name) return;
    for (Rule& equal : fits[0].equal) {
      if (equal.name == base[0].name) std::swap(equal, fits[0].rule);
    }
  }

  /// Names the base, which gives flags, too, as do those equal to it.
  void name_with_flags(const Base& base) {
    name(base);
    if (all_.of_results.fits.size() != 1) return;
    Fit& fit = all_.of_results.fits[0];
    fit.explained = fit.of = fit.alone = all_.mismatches;
    fit.against = all_.matches;
    std::erase_if(fit.equal, [&](const Rule& rule) {
      return count(with_flags({rule}, v_.wrong())) != v_.wrong().size() ||
             count(with_flags({rule}, v_.right())) != v_.right().size();
    });
  }

  const Judge& v_;
  std::vector<Rule> rules_;
  Explanation all_;
};

}  // namespace

bool gives(const Judge& v, const Rule& rule, const Sample& one) {
  return given_by(v, rule, one).results[0];
}

Explanation explain(const Judge& v, std::vector<Rule> more) {
  return Explainer(v).explain(std::move(more));
}

}  // namespace numemu::oracle

#include "emu/oracle/explain.hpp"

#include <algorithm>
#include <utility>

#include "emu/oracle/layout.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::oracle {
namespace {

/// A rule is tried on all only if it explains one of the first mismatches, and contradicts none of
/// the first matches or explains more than half of those mismatches.
constexpr std::int64_t kFirstWrong = 64, kFirstRight = 256;
constexpr std::size_t kMostNamed = 3;
/// Of mismatches that a rule explains by chance there are few.
constexpr std::int64_t kLeastExplained = 8, kLeastPart = 64;

bool tells(std::int64_t explained, std::int64_t mismatches) {
  return explained == mismatches ||
         (explained >= kLeastExplained && kLeastPart * explained >= mismatches);
}

Records first_of(const Layout& layout, const Records& records, std::int64_t most) {
  if (records.size <= most) return records;
  Records some;
  for (std::int64_t i = 0; i < most; ++i) append_record(layout, records, i, some);
  return some;
}

std::int64_t count(const std::vector<bool>& bits) {
  return std::count(bits.begin(), bits.end(), true);
}

struct Tried {
  std::vector<bool> explains, keeps;
};

Tried tried(const Verifier& v, const Rule& rule) {
  const Records &wrong = v.wrong().records, &right = v.right().records;
  const Records few_wrong = first_of(v.layout(), wrong, kFirstWrong),
                few_right = first_of(v.layout(), right, kFirstRight);
  const std::int64_t explained = count(agrees(v, rule, few_wrong));
  if (explained == 0) return {};
  const bool contradicted = right.size != 0 && count(agrees(v, rule, few_right)) != few_right.size;
  if (contradicted && 2 * explained <= few_wrong.size) return {};
  Tried t{agrees(v, rule, wrong), {}};
  if (right.size != 0) t.keeps = agrees(v, rule, right);
  return t;
}

}  // namespace

std::vector<bool> agrees(const Verifier& v, const Rule& rule, const Records& given) {
  Records computed = given;
  rule.evaluate(computed);
  const Comparer comparer = v.comparer().without_ulps();
  std::vector<bool> agreed(static_cast<std::size_t>(given.size));
  for (std::int64_t i = 0; i < given.size; ++i) {
    const int d = v.result_field(), flags = v.flags_field();
    agreed[static_cast<std::size_t>(i)] =
        comparer.compare(computed.code(d, i), given.code(d, i)).mismatch == Mismatch::none &&
        (flags < 0 || computed.code(flags, i) == given.code(flags, i));
  }
  return agreed;
}

Explanation explain(const Verifier& v) {
  Explanation all;
  all.mismatches = v.wrong().size();
  all.matches = v.right().size();
  if (all.mismatches == 0) return all;
  std::vector<Rule> rules = rules_of(v.subject());
  all.rules = std::ssize(rules);
  std::vector<Tried> results(rules.size());
  unit::for_each_tile(std::ssize(rules), 1, unit::kParallelMacs,
                      {.rows = 1, .lanes = 1, .granule = 1}, [&](const unit::Tile& tile) {
                        for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) {
                          const auto at = static_cast<std::size_t>(i);
                          results[at] = tried(v, rules[at]);
                        }
                      });
  std::vector<Fit> fits;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (results[i].explains.empty()) continue;
    const std::int64_t explained = count(results[i].explains);
    const std::int64_t contradicted = all.matches - count(results[i].keeps);
    const auto same = std::find_if(fits.begin(), fits.end(), [&](const Fit& f) {
      return f.contradicted == contradicted && f.explains == results[i].explains;
    });
    if (same != fits.end()) {
      same->equal.push_back(rules[i].name);
    } else {
      fits.push_back(
          {std::move(rules[i]), explained, 0, contradicted, {}, std::move(results[i].explains)});
    }
  }
  std::vector<bool> left(static_cast<std::size_t>(all.mismatches), true);
  while (all.fits.size() < kMostNamed) {
    Fit* best = nullptr;
    for (Fit& f : fits) {
      f.alone = 0;
      for (std::size_t i = 0; i < left.size(); ++i) f.alone += f.explains[i] && left[i];
      if (f.contradicted == 0 && f.alone > (best == nullptr ? 0 : best->alone)) best = &f;
    }
    if (best == nullptr || !tells(best->alone, count(left))) break;
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = left[i] && !best->explains[i];
    all.fits.push_back(*best);
  }
  if (!all.fits.empty()) return all;
  const auto score = [](const Fit& f) { return f.explained - f.contradicted; };
  const auto best = std::max_element(
      fits.begin(), fits.end(), [&](const Fit& x, const Fit& y) { return score(x) < score(y); });
  if (best != fits.end() && score(*best) > 0 && 2 * best->explained > all.mismatches) {
    best->alone = best->explained;
    all.fits.push_back(*best);
  }
  return all;
}

}  // namespace numemu::oracle

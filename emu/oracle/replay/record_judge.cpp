#include "emu/oracle/replay/record_judge.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using recording::Element;

constexpr std::int64_t kFirstPiece = 64;

Class class_of(Element e, std::uint64_t code) {
  if (is_integer(e)) return Class::finite;
  const Format& format = element_format(e);
  return decode(format, code >> format.container_shift & format.code_mask()).kind;
}

/// Adds records [first, first + n) to a verdict.
void compare(const RecordFile& file, std::int64_t first, const std::vector<std::uint8_t>& expected,
             Verdict& v) {
  const Element e = file.instruction->d;
  const int bytes = info(e).bytes;
  const auto n = static_cast<std::int64_t>(expected.size()) / bytes;
  for (std::int64_t r = 0; r < n; ++r) {
    const std::uint64_t recorded = file.d(first + r);
    const std::uint64_t own = recording::load_code(expected.data() + r * bytes, bytes);
    if (recorded == own) continue;
    if (v.mismatches++ == 0) {
      v.first = first + r;
      v.expected = own;
      v.recorded = recorded;
    }
    const Class one = class_of(e, recorded), other = class_of(e, own);
    v.zero_signs += one == Class::zero && other == Class::zero;
    v.nan_bits += one == Class::nan && other == Class::nan;
  }
  v.records += n;
}

/// All records, or as many as refute the rule.
Verdict verdict_of(const RecordRule& rule, const RecordFile& file, bool all) {
  Verdict v{.question = rule.question, .name = rule.name};
  std::int64_t piece = all ? file.count : kFirstPiece;
  while (v.records < file.count && (all || v.mismatches == 0)) {
    const std::int64_t first = v.records, n = std::min(piece, file.count - first);
    compare(file, first, results_of(rule, file.dots(first, n)), v);
    piece *= 4;
  }
  return v;
}

/// From the rival that comes closest, one more change at a time while that brings it closer.
std::vector<Verdict> closest(const RecordRule& rule, const RecordFile& file,
                             std::int64_t mismatches) {
  RecordRule best = rule;
  Verdict least{.question = "amended", .name = rule.name, .mismatches = mismatches};
  bool improved = false;
  while (least.mismatches != 0) {
    std::vector<RecordRule> rivals = rivals_of(best, *file.single);
    const RecordRule* next = nullptr;
    for (RecordRule& rival : rivals) {
      Verdict v = verdict_of(rival, file, true);
      if (v.mismatches >= least.mismatches) continue;
      v.question = "amended";
      v.name = best.name + " + " + rival.name;
      least = std::move(v);
      next = &rival;
    }
    if (next == nullptr) break;
    best = *next;
    best.name = least.name;
    improved = true;
  }
  return improved ? std::vector<Verdict>{std::move(least)} : std::vector<Verdict>{};
}

Judgement judge_file(const RecordFile& file, const unit::UnitDescription* described) {
  Judgement j;
  j.file = &file;
  std::optional<RecordRule> rule;
  if (described == nullptr && file.described) described = &*file.described;
  if (described != nullptr) {
    rule = rule_of(*described, *file.single);
  } else {
    rule = rule_of(file.unit, *file.single);
  }
  if (!rule) return j;
  // The reference is the rule; rivals may take what tests hold equal to it.
  Verdict own;
  own.name = rule->name;
  const recording::Batch dots = file.dots(0, file.count);
  std::vector<std::uint8_t> d = results_of(*rule->unit, dots, Path::reference);
  if (rule->results != nullptr) d = written(*rule, dots, std::move(d));
  compare(file, 0, d, own);
  j.verdicts.push_back(std::move(own));
  bool stands = j.holds();
  for (const RecordRule& rival : rivals_of(*rule, *file.single)) {
    // Where the rule is wrong, nothing that follows from it is known.
    if (j.holds() && !rival.equal.empty()) {
      j.verdicts.push_back({.question = rival.question, .name = rival.name, .equal = rival.equal});
      continue;
    }
    j.verdicts.push_back(verdict_of(rival, file, !j.holds()));
    stands = stands || j.verdicts.back().mismatches == 0;
  }
  if (!stands) j.closest = closest(*rule, file, j.verdicts.front().mismatches);
  return j;
}

std::string instruction_of(const Judgement& j) { return full_name(*j.file->instruction); }

}  // namespace

std::vector<Judgement> judge(const RecordFolder& folder, const unit::UnitDescription* described) {
  std::vector<Judgement> all(folder.files.size());
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < all.size(); ++i) {
    try {
      all[i] = judge_file(folder.files[i], described);
    } catch (...) {
#pragma omp critical
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  return all;
}

std::vector<std::string> Standing::stands_for() const {
  std::vector<std::string> names;
  for (const auto& [name, mismatches_of] : instructions)
    if (mismatches_of == 0 && !equal.contains(name)) names.push_back(name);
  return names;
}

std::vector<Standing> standings(const std::vector<Judgement>& judgements) {
  std::vector<Standing> all;
  for (const Judgement& j : judgements) {
    for (const Verdict& v : j.verdicts) {
      if (v.question.empty()) continue;
      auto at = std::ranges::find_if(all, [&](const Standing& s) {
        return s.chip == j.file->unit && s.question == v.question && s.rival == v.name;
      });
      if (at == all.end()) {
        all.push_back({v.question, j.file->unit, v.name, 0, {}, {}});
        at = all.end() - 1;
      }
      at->mismatches += v.mismatches;
      at->instructions[instruction_of(j)] += v.mismatches;
      if (!v.equal.empty()) at->equal[instruction_of(j)] = v.equal;
    }
  }
  std::ranges::stable_sort(all, [](const Standing& x, const Standing& y) {
    return std::pair(x.question, x.chip) < std::pair(y.question, y.chip);
  });
  return all;
}

std::vector<Refuted> refuted(const std::vector<Judgement>& judgements) {
  struct Sum {
    Refuted found;
    std::vector<std::pair<std::string, std::int64_t>> rivals;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const Judgement& j : judgements) {
    if (j.verdicts.empty()) continue;
    Sum& sum = sums[{j.file->unit, instruction_of(j)}];
    const Verdict& own = j.verdicts.front();
    sum.found.rule = own.name;
    sum.found.mismatches += own.mismatches;
    sum.found.records += own.records;
    sum.rivals.resize(j.verdicts.size() - 1);
    for (std::size_t r = 0; r < sum.rivals.size(); ++r) {
      sum.rivals[r].first = j.verdicts[r + 1].name;
      sum.rivals[r].second += j.verdicts[r + 1].mismatches;
    }
  }
  std::vector<Refuted> all;
  for (auto& [key, sum] : sums) {
    if (sum.found.mismatches == 0) continue;
    std::tie(sum.found.chip, sum.found.instruction) = key;
    for (const auto& [name, mismatches] : sum.rivals)
      if (mismatches == 0) sum.found.standing.push_back(name);
    all.push_back(std::move(sum.found));
  }
  return all;
}

}  // namespace numemu::oracle

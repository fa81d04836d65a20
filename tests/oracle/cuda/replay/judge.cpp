// Counting differences, bit for bit.
#include "tests/oracle/cuda/replay/judge.hpp"

#include <algorithm>

#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/number.hpp"
#include "tests/oracle/cuda/replay/rules.hpp"

namespace numemu::oracle::recording::replay {
namespace {

Verdict verdict_of(const Rule& rule, const RecordFile& file, std::size_t records) {
  Verdict v;
  v.rule = rule;
  const Element e = file.instruction->d;
  for (std::size_t n = 0; n < records; ++n) {
    const std::uint64_t recorded = file.d(n), answered = answer(rule, file.dot(n));
    if (recorded == answered) continue;
    if (v.mismatches++ == 0) {
      v.first = n;
      v.answered = answered;
      v.recorded = recorded;
    }
    v.zero_sign += is_zero(e, recorded) && is_zero(e, answered) ? 1 : 0;
    v.nan_bits += is_nan(e, recorded) && is_nan(e, answered) ? 1 : 0;
  }
  return v;
}

}  // namespace

Judgement judge(const RecordFile& file, const Choice& choice) {
  Judgement j{&file, choice.chip.empty() ? chip_of(file.unit) : choice.chip, file.count, {}};
  if (choice.first != 0 && choice.first < j.records) j.records = choice.first;
  bool specified = true;
  for (const Rule& rule : rules(j.chip, *file.instruction)) {
    const bool chosen = rule.name.find(choice.rule_text) != std::string::npos;
    if (specified || chosen) j.verdicts.push_back(verdict_of(rule, file, j.records));
    specified = false;
  }
  return j;
}

std::vector<Verdict> closest_rule(const Judgement& j) {
  const auto closer = [](const Verdict& x, const Verdict& y) {
    return x.mismatches < y.mismatches;
  };
  if (j.verdicts.empty()) return {};
  Verdict best = *std::min_element(j.verdicts.begin(), j.verdicts.end(), closer);
  const std::string& specified = j.verdicts.front().rule.name;
  if (!best.rule.question.empty()) best.rule.name = specified + " + " + best.rule.name;
  bool improved = false;
  while (best.mismatches != 0) {
    Verdict next = best;
    for (const Rule& rule : rivals_of(j.chip, *j.file->instruction, best.rule)) {
      Verdict v = verdict_of(rule, *j.file, j.records);
      v.rule.name = best.rule.name + " + " + rule.name;
      if (closer(v, next)) next = v;
    }
    if (next.mismatches == best.mismatches) break;
    best = next;
    improved = true;
  }
  best.rule.question = "amended";
  return improved ? std::vector<Verdict>{best} : std::vector<Verdict>{};
}

}  // namespace numemu::oracle::recording::replay

// The tables of the check.
#include "tests/oracle/cuda/replay/report.hpp"

#include <algorithm>
#include <map>

#include "tests/oracle/cuda/replay/number.hpp"
#include "tests/oracle/cuda/replay/products.hpp"

namespace numemu::oracle::recording::replay {
namespace {

void print_codes(std::FILE* out, const char* title, const std::uint8_t* codes, Element e,
                 int count) {
  if (count == 0) return;
  std::fprintf(out, "    %-8s", title);
  for (int i = 0; i < count; ++i)
    std::fprintf(out, " %0*llx", 2 * info(e).bytes,
                 static_cast<unsigned long long>(code_at(codes, e, i)));
  std::fprintf(out, "\n");
}

}  // namespace

void print_record(std::FILE* out, const RecordFile& file, const Verdict& v) {
  const Instruction& i = *file.instruction;
  const Dot dot = file.dot(v.first);
  const auto probe = file.probes.find(v.first);
  const std::string asked = probe == file.probes.end() ? "" : ", probe " + probe->second;
  std::fprintf(out, "  record %zu%s, rule \"%s\":\n", v.first, asked.c_str(), v.rule.name.c_str());
  print_codes(out, "a", dot.a, i.a, i.kept());
  print_codes(out, "b", dot.b, i.b, i.k);
  print_codes(out, "c", dot.c, i.c, 1);
  print_codes(out, "scale_a", dot.scale_a, Element::ue8m0, i.scales());
  print_codes(out, "scale_b", dot.scale_b, Element::ue8m0, i.scales());
  print_codes(out, "metadata", dot.metadata, Element::u8, i.groups());
  const int digits = 2 * info(i.d).bytes;
  std::fprintf(out, "    recorded %0*llx\n    rule     %0*llx\n", digits,
               static_cast<unsigned long long>(v.recorded), digits,
               static_cast<unsigned long long>(v.answered));
}

void print_file(std::FILE* out, const Judgement& j, bool records_of_rivals) {
  const Instruction& i = *j.file->instruction;
  std::fprintf(out, "%s: %s %s %s, %zu records\n", j.file->file.c_str(), j.file->unit.c_str(),
               name(i.kind), name(i).c_str(), j.records);
  if (j.verdicts.empty()) {
    std::fprintf(out, "  no rule is known for chip \"%s\"\n", j.chip.c_str());
    return;
  }
  std::fprintf(out, "  %-42s %-19s %10s %9s %8s %6s\n", "rule", "question", "mismatches",
               "zero sign", "NaN bits", "first");
  for (const Verdict& v : j.verdicts) {
    const std::string first = v.mismatches == 0 ? "-" : std::to_string(v.first);
    std::fprintf(out, "  %-42s %-19s %10zu %9zu %8zu %6s\n", v.rule.name.c_str(),
                 v.rule.question.empty() ? "(specification)" : v.rule.question.c_str(),
                 v.mismatches, v.zero_sign, v.nan_bits, first.c_str());
  }
  for (const Verdict& v : j.verdicts)
    if (v.mismatches != 0 && (v.rule.question.empty() || records_of_rivals))
      print_record(out, *j.file, v);
}

void print_closest(std::FILE* out, const Judgement& j) {
  for (const Verdict& v : closest_rule(j)) {
    std::fprintf(out, "  closest: %s: %zu mismatches\n", v.rule.name.c_str(), v.mismatches);
    if (v.mismatches != 0) print_record(out, *j.file, v);
  }
}

void print_refuted(std::FILE* out, const std::vector<Judgement>& judgements) {
  struct Sum {
    std::size_t records = 0;
    std::vector<Verdict> verdicts;  ///< mismatches over all files
  };
  std::map<std::string, Sum> sums;
  for (const Judgement& j : judgements) {
    if (j.verdicts.empty()) continue;
    const Instruction& i = *j.file->instruction;
    Sum& sum = sums[j.chip + " " + full_name(i)];
    sum.records += j.records;
    if (sum.verdicts.empty()) {
      sum.verdicts = j.verdicts;
      continue;
    }
    for (std::size_t v = 0; v < j.verdicts.size(); ++v)
      sum.verdicts[v].mismatches += j.verdicts[v].mismatches;
  }
  bool titled = false;
  for (const auto& [instruction, sum] : sums) {
    const Verdict& specified = sum.verdicts.front();
    if (specified.mismatches == 0) continue;
    if (!titled) std::fprintf(out, "\nrefuted\n");
    titled = true;
    std::string standing;
    for (const Verdict& v : sum.verdicts)
      if (v.mismatches == 0) standing += (standing.empty() ? "" : "; ") + v.rule.name;
    std::fprintf(out, "  %s: \"%s\" by %zu of %zu records; stands: %s\n", instruction.c_str(),
                 specified.rule.name.c_str(), specified.mismatches, sum.records,
                 standing.empty() ? "no rule, see \"closest\" above" : standing.c_str());
  }
}

std::vector<Standing> standings(const std::vector<Judgement>& judgements) {
  std::vector<Standing> all;
  for (const Judgement& j : judgements) {
    for (const Verdict& v : j.verdicts) {
      if (v.rule.question.empty()) continue;
      const auto same = [&](const Standing& s) {
        return s.chip == j.chip && s.question == v.rule.question && s.rival == v.rule.name;
      };
      auto at = std::find_if(all.begin(), all.end(), same);
      if (at == all.end()) {
        all.push_back({j.chip, v.rule.question, v.rule.name, 0, 0, {}});
        at = all.end() - 1;
      }
      at->refuted_by += v.mismatches;
      at->specified += j.verdicts.front().mismatches;
      const Instruction& i = *j.file->instruction;
      at->instructions[full_name(i)] += v.mismatches;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Standing& x, const Standing& y) {
    return x.question != y.question ? x.question < y.question : x.chip < y.chip;
  });
  return all;
}

std::vector<std::string> Standing::stands_for() const {
  std::vector<std::string> names;
  for (const auto& [name, by] : instructions)
    if (by == 0) names.push_back(name);
  return names;
}

void print_questions(std::FILE* out, const std::vector<Standing>& all) {
  constexpr std::size_t kNamed = 2;
  std::string question;
  for (const Standing& s : all) {
    if (s.question != question) {
      question = s.question;
      std::fprintf(out, "\n%s\n  %-13s %-42s %10s %12s  %s\n", question.c_str(), "chip", "rival",
                   "refuted by", "(spec. rule)", "stands for");
    }
    const std::vector<std::string> stands = s.stands_for();
    std::string text = stands.empty() ? "none" : std::to_string(stands.size());
    if (!stands.empty()) text += " of " + std::to_string(s.instructions.size());
    for (std::size_t i = 0; i < stands.size() && i < kNamed; ++i)
      text += (i == 0 ? ": " : ", ") + stands[i];
    if (stands.size() > kNamed) text += ", ...";
    std::fprintf(out, "  %-13s %-42s %10zu %12zu  %s\n", s.chip.c_str(), s.rival.c_str(),
                 s.refuted_by, s.specified, text.c_str());
  }
}

}  // namespace numemu::oracle::recording::replay

#include "tests/oracle/cuda/probes/predictions.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "emu/oracle/probes/probes.hpp"
#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/record_rules.hpp"
#include "tests/oracle/cuda/ask/chips.hpp"
#include "tests/oracle/cuda/ask/probe_tiles.hpp"

namespace numemu::oracle::recording {
namespace {

struct Named {
  const char* kind;
  const char* instruction;
};
/// One for each unit with its own rule; a chip without it leaves it out.
constexpr Named kExamples[] = {{"mma", "m16n8k16.f32.bf16.bf16.f32"},
                               {"mma", "m16n8k16.f16.f16.f16.f16"},
                               {"mma", "m8n8k4.f32.f16.f16.f16"},
                               {"mma", "m16n8k8.f32.tf32.tf32.f32"},
                               {"mma", "m16n8k32.f32.e4m3.e4m3.f32"},
                               {"wgmma", "m64n8k32.f32.e4m3.e4m3"},
                               {"tc5", "m64n8k32.f32.e4m3.e4m3"},
                               {"mmasp", "m16n8k32.f32.bf16.bf16.f32"},
                               {"mma", "m8n8k4.f64.f64.f64.f64"},
                               {"mma", "m16n8k32.s32.s8.s8.s32.satfinite"},
                               {"mmabs", "m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0"},
                               {"mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"},
                               {"tc5bs", "m128n8k64.block16.f32.e2m1.e2m1.ue4m3"}};

/// An example with its probes and the results of its rules, the preset's first.
struct Example {
  const Instruction* instruction;
  std::vector<Probe> probes;
  std::vector<Rule> rules;
  std::vector<std::vector<std::uint8_t>> results;  ///< [rule]: D of each probe in its container

  std::string code(std::size_t rule, std::size_t probe) const {
    const ElementInfo d = info(instruction->d);
    const auto at = probe * static_cast<std::size_t>(d.bytes);
    const std::uint64_t code = load_code(results[rule].data() + at, d.bytes);
    std::string text = "0x";
    for (int bit = d.bits - 4; bit >= 0; bit -= 4) text += "0123456789abcdef"[code >> bit & 15];
    return text;
  }
};

std::vector<Example> examples_of(const std::string& chip) {
  std::vector<Example> all;
  for (const Named& named : kExamples) {
    const int at = find_instruction(named.kind, named.instruction);
    if (at < 0) continue;
    const Instruction& i = instructions()[static_cast<std::size_t>(at)];
    if (!has(i, capability_of(chip))) continue;
    std::optional<Rule> rule = rule_of(chip, i);
    if (!rule) continue;
    rule->name = "preset";
    Example example{&i, probes(i), {*rule}, {}};
    for (Rule& rival : rivals_of(*rule, i)) example.rules.push_back(std::move(rival));
    Instruction single = i;
    single.m = single.n = 1;
    const Batch dots = tiles_of(single, example.probes);
    for (const Rule& each : example.rules) example.results.push_back(results_of(each, dots));
    all.push_back(std::move(example));
  }
  return all;
}

/// Rules that give one result for a probe: "preset / 24 fraction bits kept: `0x..`".
std::string grouped(const Example& example, const std::vector<std::size_t>& rules,
                    std::size_t probe) {
  std::vector<std::pair<std::string, std::string>> groups;  // result, names
  for (const std::size_t rule : rules) {
    const std::string code = example.code(rule, probe);
    const auto same = std::ranges::find(groups, code, &std::pair<std::string, std::string>::first);
    if (same == groups.end()) {
      groups.emplace_back(code, example.rules[rule].name);
    } else {
      same->second += " / " + example.rules[rule].name;
    }
  }
  std::string text;
  for (const auto& [code, names] : groups)
    text += (text.empty() ? "" : "; ") + names + ": `" + code + "`";
  return text;
}

/// The rows of one question on one instruction: the fewest probes that a greedy choice needs to
/// tell every two rules apart, as far as any probe of the question does.
void print_rows(std::ostream& out, const Example& example, const std::string& question) {
  std::vector<std::size_t> all = {0};
  for (std::size_t rule = 1; rule < example.rules.size(); ++rule)
    if (example.rules[rule].family == question) all.push_back(rule);
  std::vector<std::vector<std::string>> answers(example.probes.size());
  for (std::size_t p = 0; p < example.probes.size(); ++p)
    if (example.probes[p].question == question)
      for (const std::size_t rule : all) answers[p].push_back(example.code(rule, p));
  std::set<std::pair<std::size_t, std::size_t>> alike;
  for (std::size_t x = 0; x < all.size(); ++x)
    for (std::size_t y = 0; y < x; ++y) alike.emplace(x, y);
  for (;;) {
    std::size_t best = 0;
    std::ptrdiff_t most = 0;
    for (std::size_t p = 0; p < answers.size(); ++p) {
      if (answers[p].empty()) continue;
      const auto told = std::count_if(alike.begin(), alike.end(), [&](const auto& pair) {
        return answers[p][pair.first] != answers[p][pair.second];
      });
      if (told > most) {
        best = p;
        most = told;
      }
    }
    if (most == 0) return;
    for (auto pair = alike.begin(); pair != alike.end();)
      pair = answers[best][pair->first] != answers[best][pair->second] ? alike.erase(pair)
                                                                       : std::next(pair);
    out << "| " << name(example.instruction->kind) << " " << name(*example.instruction) << " | "
        << example.probes[best].id << " | " << grouped(example, all, best) << " |\n";
  }
}

/// The ids of the probes of a question in any example, series as "F150..F168".
void print_ids(std::ostream& out, const std::vector<Example>& examples,
               const std::string& question) {
  std::vector<std::pair<std::string, std::vector<std::string>>> series;
  for (const Example& example : examples)
    for (const Probe& probe : example.probes) {
      if (probe.question != question) continue;
      const std::size_t end = probe.id.find_last_not_of("0123456789") + 1;
      const std::string stem = probe.id.substr(0, end), number = probe.id.substr(end);
      const auto same = std::find_if(series.begin(), series.end(),
                                     [&](const auto& each) { return each.first == stem; });
      std::vector<std::string>& numbers =
          same != series.end() ? same->second : series.emplace_back(stem, 0).second;
      if (std::find(numbers.begin(), numbers.end(), number) == numbers.end())
        numbers.push_back(number);
    }
  out << "\nProbes:";
  for (auto& [stem, numbers] : series) {
    std::sort(numbers.begin(), numbers.end(), [](const std::string& x, const std::string& y) {
      return x.size() != y.size() ? x.size() < y.size() : x < y;
    });
    out << (&stem == &series.front().first ? " " : ", ") << stem << numbers.front();
    if (numbers.size() > 1) out << ".." << numbers.back();
  }
  out << (series.empty() ? " none on these instructions.\n\n" : ".\n\n");
}

}  // namespace

void print_predictions(std::ostream& out, const std::string& chip) {
  const std::vector<Example> examples = examples_of(chip);
  for (const OpenQuestion& question : open_questions()) {
    out << "### " << question.id << "\n\n"
        << question.text << "\n\nRivals: " << question.rivals << ". Source: " << question.source
        << ".\n\n| instruction | probe | D of each rule, the preset's first "
           "|\n|---|---|---|\n";
    for (const Example& example : examples) print_rows(out, example, question.id);
    print_ids(out, examples, question.id);
  }
}

}  // namespace numemu::oracle::recording

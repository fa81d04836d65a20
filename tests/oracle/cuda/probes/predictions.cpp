// The table of predictions: the results of all rules for the probes, computed.
#include "tests/oracle/cuda/probes/predictions.hpp"

#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>
#include <utility>

#include "emu/oracle/questions.hpp"
#include "emu/oracle/recording/chip.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::oracle::recording {
namespace {

struct Example {
  const char* kind;
  const char* instruction;
};
/// One for each unit with its own rule; a chip without it leaves it out.
constexpr Example kExamples[] = {{"mma", "m16n8k16.f32.bf16.bf16.f32"},
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

/// An example with its probes and rules.
struct Asked {
  const Instruction* instruction;
  std::vector<Probe> probes;
  Batch tiles;
  std::vector<Rule> rules;

  std::string answer_to(const Rule& rule, std::size_t probe) const {
    const std::uint64_t code = answer(rule, dot_of(tiles, static_cast<int>(probe), 0, 0));
    std::string text = "0x";
    for (int bit = info(instruction->d).bits - 4; bit >= 0; bit -= 4)
      text += "0123456789abcdef"[code >> bit & 15];
    return text;
  }
};

std::vector<Asked> examples_of(const std::string& chip) {
  std::vector<Asked> all;
  for (const Example& example : kExamples) {
    const int at = find_instruction(example.kind, example.instruction);
    if (at < 0) continue;
    const Instruction& i = instructions()[static_cast<std::size_t>(at)];
    const int version = capability_of(chip);
    if (!has(i, version)) continue;
    std::vector<Rule> known = rules(chip, i);
    if (known.empty()) continue;
    std::vector<Probe> asked = probes(i);
    Batch tiles = tiles_of(i, asked);
    all.push_back({&i, std::move(asked), std::move(tiles), std::move(known)});
  }
  return all;
}

/// Rules that give one answer to a probe: "F=24, F=26: `0x..`".
std::string grouped(const Asked& asked, const std::vector<const Rule*>& rivals, std::size_t probe) {
  std::vector<std::pair<std::string, std::string>> groups;  // answer, names
  for (const Rule* rule : rivals) {
    const std::string code = asked.answer_to(*rule, probe);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.first == code; });
    if (same == groups.end()) {
      groups.emplace_back(code, rule->name);
    } else {
      same->second += ", " + rule->name;
    }
  }
  std::string text;
  for (const auto& [code, names] : groups)
    text += (text.empty() ? "" : "; ") + names + ": `" + code + "`";
  return text;
}

/// The rows of one question on one instruction: the fewest probes that a greedy choice needs to
/// tell every two rules apart, as far as any probe of the question does.
void print_rows(std::ostream& out, const Asked& asked, const std::string& question) {
  std::vector<const Rule*> all = {&asked.rules[0]};
  for (const Rule& rule : asked.rules)
    if (rule.question == question) all.push_back(&rule);
  std::vector<std::vector<std::string>> answers(asked.probes.size());
  for (std::size_t p = 0; p < asked.probes.size(); ++p)
    if (asked.probes[p].question == question)
      for (const Rule* rule : all) answers[p].push_back(asked.answer_to(*rule, p));
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
    out << "| " << name(asked.instruction->kind) << " " << name(*asked.instruction) << " | "
        << asked.probes[best].id << " | " << grouped(asked, all, best) << " |\n";
  }
}

/// The ids of the probes of a question in any example, series as "F150..F168".
void print_ids(std::ostream& out, const std::vector<Asked>& examples, const std::string& question) {
  std::vector<std::pair<std::string, std::vector<std::string>>> series;
  for (const Asked& asked : examples)
    for (const Probe& probe : asked.probes) {
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
  const std::vector<Asked> examples = examples_of(chip);
  for (const OpenQuestion& question : open_questions()) {
    out << "### " << question.id << "\n\n"
        << question.text << "\n\nRivals: " << question.rivals << ". Source: " << question.source
        << ".\n\n| instruction | probe | D of each rule, the preset's first "
           "|\n|---|---|---|\n";
    for (const Asked& asked : examples) print_rows(out, asked, question.id);
    print_ids(out, examples, question.id);
  }
}

}  // namespace numemu::oracle::recording

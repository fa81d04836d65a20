#include "emu/oracle/replay/record_judge.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "emu/oracle/identify/protocol.hpp"
#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "emu/oracle/replay/record_folder.hpp"
#include "emu/oracle/replay/record_rules.hpp"

namespace numemu::oracle {

namespace {

using recording::Instruction;

/// The records of a file as answers to questions.
void append_answers(const RecordedFile& file, const Ports& ports, std::vector<Answered>& answers) {
  const Layout layout = container_layout(*file.instruction);
  Records records = file.records();
  for (const auto& [name, format] : {std::pair("a", ports.a), std::pair("b", ports.b)}) {
    for (std::uint64_t& code : records.columns[static_cast<std::size_t>(find_field(layout, name))])
      code >>= format->container_shift;
  }
  for (std::int64_t r = 0; r < file.count; ++r) {
    const auto probe = file.probes.find(r);
    answers.push_back(
        {{probe == file.probes.end() ? "record" : probe->second, dot_of(ports, records, r)},
         records.code(find_field(layout, "d"), r)});
  }
}

}  // namespace

std::vector<RecordedUnit> recorded_units(const RecordFolder& folder) {
  std::vector<RecordedUnit> all;
  for (const RecordedFile& file : folder.files) {
    auto at = std::ranges::find_if(all, [&](const RecordedUnit& one) {
      return one.chip == file.unit && one.instruction == file.instruction;
    });
    if (at == all.end()) {
      all.push_back({file.unit, file.instruction, ports_of(*file.instruction), {}});
      at = all.end() - 1;
    }
    append_answers(file, at->ports, at->answers);
  }
  return all;
}

namespace {

/// Hash h covers whole tiles: 4096 is a multiple of the dots of every tile.
int tiles_of_hash(const Instruction& i) { return recording::kDotsPerHash / (i.m * i.n); }

bool agrees(const recording::HashedRun& run, const Rule& rule, std::size_t h) {
  const Instruction& i = *run.instruction;
  const int tiles = tiles_of_hash(i);
  recording::Batch batch(i, tiles);
  fill(batch, tensor_of(i), run.seed, static_cast<std::int64_t>(h) * tiles);
  std::vector<std::uint8_t> d = results_of(*rule.unit, batch, Path::fast);
  if (rule.results) {
    batch.d = std::move(d);
    Sample sample;
    sample.records = records_of(batch);
    Records answered = sample.records;
    rule.results(answered, sample);
    d = in_containers(i, answered);
  }
  return recording::fnv1a(recording::kFnvBasis, d.data(), d.size()) == run.hashes[h];
}

void compare(const recording::HashedRun& run, const Rule& rule, HashReplay& v) {
  std::vector<char> differs(run.hashes.size(), 0);
  for_each_part(differs.size(), [&](std::size_t h) { differs[h] = agrees(run, rule, h) ? 0 : 1; });
  v.differ = std::count(differs.begin(), differs.end(), 1);
  const int tiles = tiles_of_hash(*run.instruction);
  v.first_tile = std::find(differs.begin(), differs.end(), 1) - differs.begin();
  v.first_tile *= tiles;
  v.last_tile = v.first_tile + tiles - 1;
}

}  // namespace

void judge_hashes(const std::string& folder, const std::string& only,
                  const std::function<void(const HashReplay&)>& done) {
  std::map<std::string, std::string> chips;
  for (const TableRow& row : read_table_rows(folder + "/index.tsv"))
    chips[row.text("kind") + " " + row.text("instr")] = row.text("unit");
  for (const recording::HashedRun& run : recording::read_hashes(folder)) {
    HashReplay v;
    v.instruction = full_name(*run.instruction);
    if (v.instruction.find(only) == std::string::npos) continue;
    v.hashes = static_cast<std::int64_t>(run.hashes.size());
    v.chip = chips[v.instruction];
    if (const std::optional<Rule> rule = rule_of(v.chip, *run.instruction)) {
      v.unit = rule->name;
      compare(run, *rule, v);
    }
    done(v);
  }
}

Judged Recording::judged(const Subject& subject, const Rule& rule, bool all) const {
  constexpr std::int64_t kFirstPiece = 64;
  const Tolerance bits{.nan = NanMatch::payload};
  Judge judge(subject, rule, layout, {number, layout.back().bits, bits},
              {.tolerance = bits, .samples = false});
  std::int64_t piece = all ? records.size : kFirstPiece, first = 0;
  while (first < records.size && (all || judge.judged().holds())) {
    const std::int64_t n = std::min(piece, records.size - first);
    const Records next = slice(layout, records, first, n);
    judge.check({&next, 1});
    first += n;
    piece *= 4;
  }
  return judge.judged();
}

namespace {

Judged judged_by(const Recording& records, const Rule& rule, const Instruction& i, bool all) {
  return records.judged(subject_of(*rule.unit, i), rule, all);
}

/// From the rival that comes closest, one more change at a time while that brings it closer.
std::vector<Judged> closest(const Recording& records, const Rule& rule, const Instruction& i,
                            Judged least) {
  Rule best = rule;
  bool improved = false;
  while (!least.holds()) {
    std::vector<Rule> rivals = rivals_of(best, i);
    const Rule* next = nullptr;
    for (Rule& rival : rivals) {
      Judged r = judged_by(records, rival, i, true);
      if (r.tally.mismatches() >= least.tally.mismatches()) continue;
      r.family = "amended";
      r.name = best.name + " + " + rival.name;
      least = std::move(r);
      next = &rival;
    }
    if (next == nullptr) break;
    best = *next;
    best.name = least.name;
    improved = true;
  }
  return improved ? std::vector<Judged>{std::move(least)} : std::vector<Judged>{};
}

Judgement judge_file(const RecordedFile& file, const unit::UnitDescription* described) {
  Judgement j;
  j.file = &file;
  const Instruction& i = *file.instruction;
  if (described == nullptr && file.described) described = &*file.described;
  const std::optional<Rule> rule =
      described != nullptr ? rule_of(*described, i) : rule_of(file.unit, i);
  if (!rule) return j;
  const Recording records{container_layout(i), file.records(), ports_of(i).d};
  // The reference is the rule; rivals may take what tests hold equal to it.
  j.rules.push_back(judged_by(records, *rule, i, true));
  bool stands = j.holds();
  for (const Rule& rival :
       described != nullptr ? rivals_of(*rule, i) : rivals_of_catalogue(*rule, i)) {
    // Where the rule is wrong, nothing that follows from it is known.
    if (j.holds() && !rival.equal.empty()) {
      j.rules.push_back({.family = rival.family, .name = rival.name, .equal = rival.equal});
      continue;
    }
    j.rules.push_back(judged_by(records, rival, i, !j.holds()));
    stands = stands || j.rules.back().holds();
  }
  if (!stands) j.closest = closest(records, *rule, i, j.rules.front());
  return j;
}

std::string instruction_of(const Judgement& j) { return full_name(*j.file->instruction); }

}  // namespace

std::vector<Judgement> judge(const RecordFolder& folder, const unit::UnitDescription* described) {
  std::vector<Judgement> all(folder.files.size());
  for_each_part(all.size(),
                [&](std::size_t i) { all[i] = judge_file(folder.files[i], described); });
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
    for (const Judged& v : j.rules) {
      if (v.family.empty()) continue;
      auto at = std::ranges::find_if(all, [&](const Standing& s) {
        return s.chip == j.file->unit && s.family == v.family && s.rival == v.name;
      });
      if (at == all.end()) {
        all.push_back({v.family, j.file->unit, v.name, 0, {}, {}});
        at = all.end() - 1;
      }
      at->mismatches += v.tally.mismatches();
      at->instructions[instruction_of(j)] += v.tally.mismatches();
      if (!v.equal.empty()) at->equal[instruction_of(j)] = v.equal;
    }
  }
  std::ranges::stable_sort(all, [](const Standing& x, const Standing& y) {
    return std::pair(x.family, x.chip) < std::pair(y.family, y.chip);
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
    if (j.rules.empty()) continue;
    Sum& sum = sums[{j.file->unit, instruction_of(j)}];
    const Judged& own = j.rules.front();
    sum.found.rule = own.name;
    sum.found.mismatches += own.tally.mismatches();
    sum.found.records += own.tally.records;
    sum.rivals.resize(j.rules.size() - 1);
    for (std::size_t r = 0; r < sum.rivals.size(); ++r) {
      sum.rivals[r].first = j.rules[r + 1].name;
      sum.rivals[r].second += j.rules[r + 1].tally.mismatches();
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

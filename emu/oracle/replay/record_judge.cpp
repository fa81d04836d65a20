#include "emu/oracle/replay/record_judge.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/recording/records.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "emu/oracle/replay/record_folder.hpp"
#include "emu/oracle/replay/record_rules.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {

namespace {

using recording::Element;
using recording::Instruction;

std::vector<std::uint64_t> codes(const std::uint8_t* at, Element e, int count) {
  const int bytes = info(e).bytes, shift = is_integer(e) ? 0 : element_format(e).container_shift;
  std::vector<std::uint64_t> all;
  for (int j = 0; j < count; ++j)
    all.push_back(recording::load_code(at + j * bytes, bytes) >> shift);
  return all;
}

Answered answer(const RecordFile& file, std::int64_t r) {
  const Instruction& i = *file.instruction;
  const auto record = recording::view_record(
      i, file.bytes.data() + static_cast<std::size_t>(r) * recording::record_bytes(i));
  const auto probe = file.probes.find(r);
  Answered one{{probe == file.probes.end() ? "record" : probe->second, {}}, file.d(r)};
  Dot& dot = one.question.dot;
  dot.a = codes(record.a, i.a, i.kept());
  dot.b = codes(record.b, i.b, i.k);
  dot.c = codes(record.c, i.c, 1).front();
  dot.scale_a.assign(record.scale_a, record.scale_a + i.scales());
  dot.scale_b.assign(record.scale_b, record.scale_b + i.scales());
  dot.kept = kept_indices(i, {record.metadata, record.metadata + i.groups()});
  return one;
}

}  // namespace

std::vector<RecordedUnit> recorded_units(const RecordFolder& folder) {
  std::vector<RecordedUnit> all;
  for (const RecordFile& file : folder.files) {
    auto at = std::ranges::find_if(all, [&](const RecordedUnit& one) {
      return one.chip == file.unit && one.instruction == file.instruction;
    });
    if (at == all.end()) {
      all.push_back({file.unit, file.instruction, ports_of(*file.instruction), {}});
      at = all.end() - 1;
    }
    for (std::int64_t r = 0; r < file.count; ++r) at->answers.push_back(answer(file, r));
  }
  return all;
}

namespace {

using recording::Instruction;

/// Hash h covers whole tiles: 4096 is a multiple of the dots of every tile.
int tiles_of_hash(const Instruction& i) { return recording::kDotsPerHash / (i.m * i.n); }

bool agrees(const recording::HashedRun& run, const RecordRule& rule, std::size_t h) {
  const Instruction& i = *run.instruction;
  const int tiles = tiles_of_hash(i);
  recording::Batch batch(i, tiles);
  fill(batch, tensor_of(i), run.seed, static_cast<std::int64_t>(h) * tiles);
  const std::vector<std::uint8_t> d = results_of(rule, batch);
  return recording::fnv1a(recording::kFnvBasis, d.data(), d.size()) == run.hashes[h];
}

void compare(const recording::HashedRun& run, const RecordRule& rule, HashVerdict& v) {
  std::vector<char> differs(run.hashes.size(), 0);
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t h = 0; h < differs.size(); ++h) {
    try {
      differs[h] = agrees(run, rule, h) ? 0 : 1;
    } catch (...) {
#pragma omp critical
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  v.differ = std::count(differs.begin(), differs.end(), 1);
  const int tiles = tiles_of_hash(*run.instruction);
  v.first_tile = std::find(differs.begin(), differs.end(), 1) - differs.begin();
  v.first_tile *= tiles;
  v.last_tile = v.first_tile + tiles - 1;
}

std::vector<recording::HashedRun> read_runs(const std::string& folder) {
  try {
    return recording::read_hashes(folder);
  } catch (const std::exception& error) {
    throw Error(error.what());
  }
}

}  // namespace

void judge_hashes(const std::string& folder, const std::string& only,
                  const std::function<void(const HashVerdict&)>& done) {
  std::map<std::string, std::string> chips;
  for (const TableRow& row : read_table_rows(folder + "/index.tsv"))
    chips[row.text("kind") + " " + row.text("instr")] = row.text("unit");
  for (const recording::HashedRun& run : read_runs(folder)) {
    HashVerdict v;
    v.instruction = full_name(*run.instruction);
    if (v.instruction.find(only) == std::string::npos) continue;
    v.hashes = static_cast<std::int64_t>(run.hashes.size());
    v.chip = chips[v.instruction];
    if (const std::optional<RecordRule> rule = rule_of(v.chip, *run.instruction)) {
      v.unit = rule->name;
      compare(run, *rule, v);
    }
    done(v);
  }
}

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

#include "emu/oracle/replay/hash_judge.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <vector>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/replay/record_folder.hpp"
#include "emu/oracle/replay/record_rules.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
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

}  // namespace numemu::oracle

#include "tests/oracle/cuda/replay/hash_check.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/recording/records.hpp"
#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// The chip on which each instruction of a folder was measured.
std::map<std::string, std::string> chips_of(const std::string& folder) {
  std::map<std::string, std::string> chips;
  for (const recording::IndexRow& row : recording::read_index(folder))
    chips[full_name(*row.instruction)] = chip_of(row.unit);
  return chips;
}

/// Hash h covers whole tiles, since 4096 is a multiple of the dots of every tile.
std::uint64_t expected_hash(const HashedRun& run, const Rule& rule, std::size_t h) {
  const Instruction& i = *run.instruction;
  const int tiles = kDotsPerHash / (i.m * i.n);
  Batch batch(i, tiles);
  fill(batch, tensor_of(i), run.seed, static_cast<std::int64_t>(h) * tiles);
  const std::vector<std::uint8_t> d = tile_answers(rule, batch);
  return fnv1a(kFnvBasis, d.data(), d.size());
}

/// Places of the hashes that differ, ascending.
std::vector<std::size_t> differences(const HashedRun& run, const Rule& rule, int threads) {
  std::vector<char> differs(run.hashes.size(), 0);
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < std::max(threads, 1); ++t)
    workers.emplace_back([&] {
      for (std::size_t h = next++; h < differs.size(); h = next++)
        differs[h] = expected_hash(run, rule, h) == run.hashes[h] ? 0 : 1;
    });
  for (std::thread& worker : workers) worker.join();
  std::vector<std::size_t> places;
  for (std::size_t h = 0; h < differs.size(); ++h)
    if (differs[h] != 0) places.push_back(h);
  return places;
}

}  // namespace

int check_hashes(const std::string& folder, const std::string& only, int threads, std::FILE* out) {
  const std::map<std::string, std::string> chips = chips_of(folder);
  int wrong = 0;
  for (const HashedRun& run : read_hashes(folder)) {
    const std::string text = full_name(*run.instruction);
    if (text.find(only) == std::string::npos) continue;
    const auto chip = chips.find(text);
    const std::vector<Rule> known =
        chip == chips.end() ? std::vector<Rule>{} : rules(chip->second, *run.instruction);
    if (known.empty()) {
      std::fprintf(out, "%s: %zu hashes, no rule\n", text.c_str(), run.hashes.size());
      continue;
    }
    const std::vector<std::size_t> places = differences(run, known.front(), threads);
    std::fprintf(out, "%s: %s: %zu of %zu hashes agree", text.c_str(), known.front().name.c_str(),
                 run.hashes.size() - places.size(), run.hashes.size());
    if (!places.empty()) {
      ++wrong;
      const auto tiles =
          static_cast<std::size_t>(kDotsPerHash / (run.instruction->m * run.instruction->n));
      std::fprintf(out, ", the first that differs covers tiles %zu to %zu", places.front() * tiles,
                   places.front() * tiles + tiles - 1);
    }
    std::fprintf(out, "\n");
    std::fflush(out);
  }
  return wrong;
}

}  // namespace numemu::oracle::recording::replay

#include "tests/oracle/cuda/ask/ask.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "emu/oracle/recording/data.hpp"
#include "tests/oracle/cuda/ask/large_run.hpp"
#include "tests/oracle/cuda/ask/probe_tiles.hpp"
#include "tests/oracle/cuda/ask/record_writer.hpp"
#include "tests/oracle/cuda/ask/steps.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"
#include "tests/oracle/cuda/layout/layout_check.hpp"

namespace numemu::oracle::recording {
namespace {

/// Tiles that are in memory at once; a multiple of ten, so that each kind of data is in every
/// batch.
constexpr int kBatchTiles = 2000;

/// Threads fill neighbouring tiles of one batch through batches of their own.
void fill_by_threads(Batch& batch, const AskOptions& options, std::int64_t first) {
  const std::uint32_t tensor = tensor_of(*batch.instruction);
  const int threads = std::clamp(options.threads, 1, batch.count);
  std::vector<std::thread> workers;
  const TileBytes bytes = tile_bytes(*batch.instruction);
  for (int t = 0; t < threads; ++t) {
    const int from = static_cast<int>(std::int64_t{batch.count} * t / threads);
    const int to = static_cast<int>(std::int64_t{batch.count} * (t + 1) / threads);
    workers.emplace_back([&batch, &bytes, &options, tensor, first, from, to] {
      Batch part(*batch.instruction, to - from);
      fill(part, tensor, options.seed, first + from);
      const auto put = [from](const std::vector<std::uint8_t>& source, std::size_t tile,
                              std::vector<std::uint8_t>& all) {
        std::copy(source.begin(), source.end(),
                  all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(from) * tile));
      };
      put(part.a, bytes.a, batch.a);
      put(part.b, bytes.b, batch.b);
      put(part.c, bytes.c, batch.c);
      put(part.metadata, bytes.metadata, batch.metadata);
      put(part.scale_a, bytes.scale_a, batch.scale_a);
      put(part.scale_b, bytes.scale_b, batch.scale_b);
    });
  }
  for (std::thread& worker : workers) worker.join();
}

HashedRun large_run(Machine& machine, const Instruction& i, const AskOptions& options,
                    std::string& records) {
  const int tiles = options.tiles == 0 ? large_run_tiles(i) : options.tiles;
  DotHasher hasher;
  for (int first = 0; first < tiles; first += kBatchTiles) {
    Batch batch(i, std::min(kBatchTiles, tiles - first));
    fill_by_threads(batch, options, first);
    machine.run(batch);
    hasher.add(batch);
    append_records(records, batch, first);
  }
  return {&i, options.seed, tiles, hasher.hashes()};
}

Batch ask_probes(Machine& machine, const Instruction& i, const std::vector<Probe>& asked) {
  Batch batch = tiles_of(i, asked);
  if (batch.count != 0) machine.run(batch);
  return batch;
}

}  // namespace

Asked ask(Machine& machine, int number, const AskOptions& options, const std::string& folder) {
  const Instruction& i = instructions()[static_cast<std::size_t>(number)];
  Asked asked;
  for (const std::string& fault : check_layout(machine, i)) asked.layout_faults += fault + "\n";
  if (!asked.layout_faults.empty()) asked.layout_faults += metadata_map(machine, i);
  if (!asked.layout_faults.empty()) {
    write_whole_file(folder + "/faults/" + file_stem(i) + ".txt", asked.layout_faults);
    return asked;
  }

  RecordWriter writer(folder, options.unit, options.source);
  std::string records;
  const HashedRun run = large_run(machine, i, options, records);
  writer.add_records(i, records);
  write_hashes(folder, {run});
  asked.dots = std::int64_t{run.tiles} * i.m * i.n;
  asked.records = static_cast<int>(records.size() / record_bytes(i));

  const std::vector<Probe> asked_probes = probes(i);
  const Batch answered = ask_probes(machine, i, asked_probes);
  if (!asked_probes.empty()) writer.add_probes(asked_probes, answered);
  writer.finish();
  asked.probes = answered.count;

  ask_steps(machine, i, folder);
  return asked;
}

}  // namespace numemu::oracle::recording

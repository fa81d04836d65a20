#include "emu/oracle/recording/hashes.hpp"

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/whole_file.hpp"
#include "formats/error.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::uint64_t kMostTiles = 1000000000;  // that a table may claim

std::string text(std::uint64_t n) { return std::to_string(n); }

std::uint64_t dots_of(const Instruction& i, int tiles) {
  return static_cast<std::uint64_t>(i.m) * static_cast<std::uint64_t>(i.n) *
         static_cast<std::uint64_t>(tiles);
}

const HashedRun* find(const std::vector<HashedRun>& runs, const HashedRun& wanted) {
  for (const HashedRun& run : runs)
    if (full_name(*run.instruction) == full_name(*wanted.instruction)) return &run;
  return nullptr;
}

}  // namespace

std::vector<std::string> hash_cells(const HashedRun& run, std::size_t offset) {
  const Instruction& i = *run.instruction;
  return {name(i.kind),
          name(i),
          text(run.seed),
          text(static_cast<std::uint64_t>(run.tiles)),
          text(dots_of(i, run.tiles)),
          text(kDotsPerHash),
          text(offset),
          text(run.hashes.size())};
}

std::vector<HashedRun> read_hashes(const std::string& folder) {
  const std::string path = folder + "/hashes.tsv", data = folder + "/hashes.bin";
  const std::string bytes = read_whole_file(data);
  std::vector<HashedRun> runs;
  std::size_t offset = 0;
  for (const std::vector<std::string>& cell : read_table(path, kHashColumns)) {
    const std::string where = path + ":" + std::to_string(runs.size() + 2);
    const int found = find_instruction(cell[0], cell[1]);
    if (found < 0) throw Error(where + ": no instruction " + cell[0] + " " + cell[1]);
    const std::uint64_t tiles = cell_number(where, cell[3]), count = cell_number(where, cell[7]);
    if (tiles > kMostTiles)
      throw Error(where + ": expected at most " + text(kMostTiles) + " tiles, got " + cell[3]);
    HashedRun run{&instructions()[static_cast<std::size_t>(found)],
                  cell_number(where, cell[2]),
                  static_cast<int>(tiles),
                  {}};
    if (count > bytes.size() / 8 - offset)
      throw Error(data + ": expected " + text(count) + " hashes at " + text(offset) + ", has " +
                  text(bytes.size() / 8) + " in all");
    for (std::uint64_t h = 0; h < count; ++h)
      run.hashes.push_back(
          load_code(reinterpret_cast<const std::uint8_t*>(bytes.data()) + 8 * (offset + h), 8));
    const std::vector<std::string> expected = hash_cells(run, offset);
    for (std::size_t column = 0; column < cell.size(); ++column)
      if (cell[column] != expected[column])
        throw Error(where + ": expected '" + expected[column] + "' in column " +
                    std::to_string(column + 1) + ", got '" + cell[column] + "'");
    if (find(runs, run) != nullptr)
      throw Error(where + ": " + full_name(*run.instruction) + " stands twice");
    offset += count;
    runs.push_back(run);
  }
  if (bytes.size() != 8 * offset)
    throw Error(data + ": expected " + text(8 * offset) + " bytes, has " + text(bytes.size()));
  return runs;
}

}  // namespace numemu::oracle::recording

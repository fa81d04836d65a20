#include "tests/oracle/cuda/ask/large_run.hpp"

#include <algorithm>
#include <numeric>

#include "emu/oracle/recording/data.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::int64_t kLeastDots = 2500000;

}  // namespace

int large_run_tiles(const Instruction& i) {
  const int dots = i.m * i.n;
  const int whole_hashes = kDotsPerHash / std::gcd(kDotsPerHash, dots);
  const int unit = std::lcm(whole_hashes, kDataKinds);
  const std::int64_t unit_dots = static_cast<std::int64_t>(unit) * dots;
  return static_cast<int>((kLeastDots + unit_dots - 1) / unit_dots) * unit;
}

void DotHasher::add(const Batch& batch) {
  const int bytes = info(batch.instruction->d).bytes;
  std::int64_t left = std::int64_t{batch.instruction->m} * batch.instruction->n * batch.count;
  const std::uint8_t* at = batch.d.data();
  while (left > 0) {
    const auto now = static_cast<int>(std::min<std::int64_t>(left, kDotsPerHash - dots_));
    hash_ = fnv1a(hash_, at, static_cast<std::size_t>(now) * static_cast<std::size_t>(bytes));
    at += static_cast<std::ptrdiff_t>(now) * bytes;
    left -= now;
    dots_ += now;
    if (dots_ == kDotsPerHash) {
      hashes_.push_back(hash_);
      hash_ = kFnvBasis;
      dots_ = 0;
    }
  }
}

void write_hashes(const std::string& folder, const std::vector<HashedRun>& runs) {
  std::string table(kHashColumns), bytes;
  table += '\n';
  for (const HashedRun& run : runs) {
    table += table_line(hash_cells(run, bytes.size() / 8));
    for (const std::uint64_t hash : run.hashes) {
      std::uint8_t code[8];
      store_code(code, 8, hash);
      bytes.append(code, code + 8);
    }
  }
  write_whole_file(folder + "/hashes.bin", bytes);
  write_whole_file(folder + "/hashes.tsv", table);
}

}  // namespace numemu::oracle::recording

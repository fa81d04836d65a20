#include "tests/oracle/cuda/emulator/folder_answers.hpp"

#include <algorithm>
#include <cstdio>

#include "emu/oracle/recording/records.hpp"
#include "tests/oracle/cuda/emulator/unit_answers.hpp"
#include "tests/oracle/cuda/emulator/unit_of.hpp"

namespace numemu::oracle::recording {
namespace {

/// Single dots as tiles of one row and one column.
Batch dots_of(const Instruction& dot, const std::string& records, int count) {
  Batch batch(dot, count);
  const TileBytes bytes = tile_bytes(dot);
  const auto* at = reinterpret_cast<const std::uint8_t*>(records.data());
  for (std::size_t r = 0; r < static_cast<std::size_t>(count); ++r, at += record_bytes(dot)) {
    const Record record = view_record(dot, at);
    const auto put = [r](const std::uint8_t* from, std::size_t size,
                         std::vector<std::uint8_t>& to) {
      std::copy_n(from, size, to.begin() + static_cast<std::ptrdiff_t>(r * size));
    };
    put(record.a, bytes.a, batch.a);
    put(record.b, bytes.b, batch.b);
    put(record.c, bytes.c, batch.c);
    put(record.scale_a, bytes.scale_a, batch.scale_a);
    put(record.scale_b, bytes.scale_b, batch.scale_b);
    put(record.metadata, bytes.metadata, batch.metadata);
    put(record.d, bytes.d, batch.d);
  }
  return batch;
}

void compare(const Batch& batch, const std::vector<std::uint8_t>& said, ComparedFile& file) {
  const int bytes = info(batch.instruction->d).bytes;
  for (int r = 0; r < batch.count; ++r) {
    const auto at = static_cast<std::size_t>(r * bytes);
    const std::uint64_t unit = load_code(&said[at], bytes);
    const std::uint64_t machine = load_code(&batch.d[at], bytes);
    if (unit == machine) continue;
    const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
    if (!is_integer(batch.instruction->d) && ((unit | machine) & ~sign) == 0) ++file.zero_signs;
    if (file.mismatches++ == 0) {
      char text[120];
      std::snprintf(text, sizeof text, "record %d: the machine says %llx, the unit %llx", r,
                    static_cast<unsigned long long>(machine),
                    static_cast<unsigned long long>(unit));
      file.first = text;
    }
  }
}

}  // namespace

std::vector<ComparedFile> compare_folder(const std::string& folder) {
  std::vector<ComparedFile> files;
  for (const IndexRow& row : read_index(folder)) {
    ComparedFile file;
    file.file = row.file;
    file.unit = unit_of(row.unit, *row.instruction);
    file.records = row.count;
    if (!file.unit.empty()) {
      Instruction dot = *row.instruction;
      dot.m = dot.n = 1;
      Batch batch = dots_of(dot, read_records(folder, row), row.count);
      const unit::Unit& unit = unit::find_unit(file.unit);
      for (const Way way : {Way::reference, Way::fast})
        compare(batch, unit_answers(unit, batch, way), file);
    }
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace numemu::oracle::recording

// Sizes and offsets of records, and what is checked before a rule sees them.
#include "tests/oracle/cuda/replay/record_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/oracle/cuda/replay/index.hpp"
#include "tests/oracle/cuda/replay/products.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// Where each part of a record begins; `d` is the last.
struct Layout {
  std::size_t b, c, scale_a, scale_b, metadata, d, end;
};
Layout layout_of(const Instruction& i) {
  const auto bytes = [](int codes, Element e) {
    return static_cast<std::size_t>(codes) * static_cast<std::size_t>(info(e).bytes);
  };
  Layout l{};
  l.b = bytes(i.kept(), i.a);
  l.c = l.b + bytes(i.k, i.b);
  l.scale_a = l.c + bytes(1, i.c);
  l.scale_b = l.scale_a + static_cast<std::size_t>(i.scales());
  l.metadata = l.scale_b + static_cast<std::size_t>(i.scales());
  l.d = l.metadata + static_cast<std::size_t>(i.groups());
  l.end = l.d + bytes(1, i.d);
  return l;
}

std::string hexadecimal(std::uint64_t code) {
  std::string digits;
  for (; code != 0 || digits.empty(); code >>= 4)
    digits.insert(digits.begin(), "0123456789abcdef"[code & 15]);
  return "0x" + digits;
}

void check_codes(const std::string& where, const std::uint8_t* codes, Element e, int count) {
  const int bits = info(e).bits;
  if (bits == 8 * info(e).bytes) return;
  for (int j = 0; j < count; ++j) {
    const std::uint64_t code = code_at(codes, e, j);
    if (code >> bits != 0)
      throw BadInput(where + "[" + std::to_string(j) + "]: expected a code of " +
                     std::to_string(bits) + " bits, got " + hexadecimal(code));
  }
}

void check_metadata(const std::string& where, const Dot& dot) {
  const Instruction& i = *dot.instruction;
  for (int g = 0; g < i.groups(); ++g) {
    const int word = dot.metadata[g];
    const bool tf32 = i.sparsity == Sparsity::one_of_two;
    const bool good = tf32 ? word == 0x4 || word == 0xE : word < 16 && (word & 3) < word >> 2;
    if (good) continue;
    throw BadInput(where + " metadata[" + std::to_string(g) + "]: expected " +
                   (tf32 ? "0x4 or 0xe" : "two rising indices in four bits") + ", got " +
                   hexadecimal(static_cast<std::uint64_t>(word)));
  }
}

void expect(const IndexRow& row, const char* column, const std::string& expected) {
  if (row.text(column) == expected) return;
  throw BadInput(row.where + ": " + column + ": expected " + expected + " for " +
                 row.text("instr") + ", got \"" + row.text(column) + "\"");
}

void expect(const IndexRow& row, const char* column, int expected) {
  expect(row, column, std::to_string(expected));
}

/// Checks every column that the instruction fixes.
void check_row(const IndexRow& row, const Instruction& i) {
  expect(row, "K", i.k);
  expect(row, "a", info(i.a).name);
  expect(row, "b", info(i.b).name);
  expect(row, "c", info(i.c).name);
  expect(row, "d", info(i.d).name);
  expect(row, "scale", i.block == 0 ? "-" : info(i.scale).name);
  expect(row, "block", i.block);
  expect(row, "nscale", i.scales());
  if (row.has("kept")) expect(row, "kept", i.kept());
  if (row.has("nmeta")) expect(row, "nmeta", i.groups());
  if (!row.has("nmeta") && i.groups() != 0)
    throw BadInput(row.where + ": " + row.text("instr") + " is sparse: no columns kept and nmeta");
}

void check_size(const RecordFile& r, std::uintmax_t bytes) {
  const std::size_t expected = r.count * r.record_bytes();
  if (bytes != expected)
    throw BadInput(r.file + ": expected " + std::to_string(r.count) + " records of " +
                   std::to_string(r.record_bytes()) + " bytes, that is " +
                   std::to_string(expected) + " bytes, got " + std::to_string(bytes));
}

}  // namespace

std::size_t RecordFile::record_bytes() const { return layout_of(*instruction).end; }

Dot RecordFile::dot(std::size_t record) const {
  const Layout l = layout_of(*instruction);
  const std::uint8_t* at = bytes.data() + record * l.end;
  return {instruction, at, at + l.b, at + l.c, at + l.metadata, at + l.scale_a, at + l.scale_b};
}

std::uint64_t RecordFile::d(std::size_t record) const {
  const Layout l = layout_of(*instruction);
  return code_at(bytes.data() + record * l.end + l.d, instruction->d, 0);
}

std::vector<std::uint8_t> read_bytes(const std::string& path) {
  std::error_code error;
  const bool finite = std::filesystem::is_regular_file(path, error);  // no folder, pipe or device
  std::ifstream file(finite ? path : "", std::ios::binary);
  if (!file) throw BadInput(path + ": cannot read");
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file),
                                  std::istreambuf_iterator<char>()};
  if (file.bad()) throw BadInput(path + ": cannot read");
  return bytes;
}

void check(const RecordFile& r) {
  check_size(r, r.bytes.size());
  for (std::size_t n = 0; n < r.count; ++n) {
    const Dot dot = r.dot(n);
    const std::string where = r.file + " record " + std::to_string(n);
    check_codes(where + " a", dot.a, r.instruction->a, r.instruction->kept());
    check_codes(where + " b", dot.b, r.instruction->b, r.instruction->k);
    check_metadata(where, dot);
  }
}

Records read_records(const std::string& folder, const std::string& index) {
  Records records;
  std::set<std::string> files;
  for (const IndexRow& row : read_index(index)) {
    const std::string& kind = row.text("kind");
    if (kind == "mfma" || kind == "cvt") {
      const char* reason = kind == "cvt" ? "conversions are not dots" : "not a unit of NVIDIA";
      records.skipped.push_back({row.text("file"), reason});
      continue;
    }
    const int found = find_instruction(kind, row.text("instr"));
    if (found < 0) throw BadInput(row.where + ": no instruction " + kind + " " + row.text("instr"));
    RecordFile file;
    file.file = row.text("file");
    file.unit = row.text("unit");
    file.source = row.text("source");
    file.instruction = &instructions()[static_cast<std::size_t>(found)];
    check_row(row, *file.instruction);
    file.count = row.number("count");
    if (file.count == 0) throw BadInput(row.where + ": count: expected records, got none");
    if (!files.insert(file.file).second)
      throw BadInput(row.where + ": file \"" + file.file + "\" stands twice");
    const std::string path = path_below(folder, row, file.file);
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (!error) check_size(file, bytes);  // before a wrong file fills the memory
    file.bytes = read_bytes(path);
    check(file);
    records.files.push_back(std::move(file));
  }
  return records;
}

void name_probes(const std::string& table, Records& records) {
  for (const IndexRow& row : read_index(table)) {
    RecordFile* file = nullptr;
    for (RecordFile& f : records.files)
      if (f.file == row.text("file")) file = &f;
    const bool skipped = std::any_of(records.skipped.begin(), records.skipped.end(),
                                     [&](const Skipped& s) { return s.file == row.text("file"); });
    if (skipped) continue;
    if (file == nullptr)
      throw BadInput(row.where + ": file \"" + row.text("file") + "\" is not in the index");
    const std::size_t record = row.number("record");
    if (record >= file->count)
      throw BadInput(row.where + ": expected a record below " + std::to_string(file->count) +
                     ", got " + std::to_string(record));
    file->probes[record] = row.text("id") + " (" + row.text("question") + ")";
  }
}

}  // namespace numemu::oracle::recording::replay

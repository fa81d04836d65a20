#include "emu/oracle/replay/record_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/recording/records.hpp"
#include "emu/oracle/recording/whole_file.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "emu/unit/catalogue/models.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {

const std::string& TableRow::text(const std::string& column) const {
  const auto found = cells.find(column);
  if (found == cells.end()) throw Error(where + ": expected a column " + column);
  return found->second;
}

void TableRow::expect(const std::string& column, const std::string& expected) const {
  if (text(column) != expected)
    throw Error(fmt::format("{}: {}: expected {} for {}, found '{}'", where, column, expected,
                            text("instr"), text(column)));
}

std::int64_t TableRow::number(const std::string& column) const {
  constexpr std::size_t kMostDigits = 9;
  const std::string& digits = text(column);
  std::int64_t value = -1;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < 0 || digits.size() > kMostDigits)
    throw Error(
        fmt::format("{}: {}: expected a number below 10^9, found '{}'", where, column, digits));
  return value;
}

std::vector<TableRow> read_table_rows(const std::string& path) {
  std::istringstream lines(recording::read_whole_file(path));
  std::vector<std::string> names;
  std::vector<TableRow> rows;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::vector<std::string> cells = recording::split(line, '\t');
    if (number == 1) {
      names = std::move(cells);
      continue;
    }
    TableRow row{fmt::format("{} line {}", path, number), {}};
    if (cells.size() != names.size())
      throw Error(
          fmt::format("{}: expected {} columns, found {}", row.where, names.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!row.cells.emplace(names[i], std::move(cells[i])).second)
        throw Error(fmt::format("{} line 1: column {} appears twice", path, names[i]));
    }
    rows.push_back(std::move(row));
  }
  if (names.empty()) throw Error(path + ": expected a line of column names, found nothing");
  return rows;
}

std::string path_below(const std::string& folder, const TableRow& row, const std::string& file) {
  for (const std::string& part : recording::split(file, '/')) {
    if (part.empty() || part == "..")
      throw Error(fmt::format("{}: expected a path below {}, found '{}'", row.where, folder, file));
  }
  return folder + "/" + file;
}

std::vector<std::uint8_t> read_exactly(const std::string& path, std::int64_t bytes,
                                       const std::string& what) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);  // no folder, pipe or device
  std::ifstream file(regular ? path : "", std::ios::binary);
  if (!file) throw file_error(path + ": cannot read");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size != static_cast<std::uintmax_t>(bytes))
    throw Error(fmt::format("{}: expected {}, that is {} bytes, found {}", path, what, bytes,
                            error ? 0 : size));
  std::vector<std::uint8_t> all(static_cast<std::size_t>(bytes));
  file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(bytes));
  if (!file) throw file_error(path + ": cannot read");
  return all;
}

namespace {

namespace fs = std::filesystem;
using recording::Element;
using recording::Instruction;
using recording::Sparsity;

constexpr const char* kIndex = "/index.tsv";
constexpr const char* kModel = "/index_mmasim.tsv";
constexpr const char* kHardware = "/index_hw_leeds.tsv";

std::string where_of(const RecordedFile& file, std::int64_t record) {
  return fmt::format("{} record {}", file.file, record);
}

void check_codes(const std::string& where, const char* name, const std::uint8_t* codes, Element e,
                 int count) {
  const int bits = info(e).bits, bytes = info(e).bytes;
  if (bits == 8 * bytes) return;
  for (int j = 0; j < count; ++j) {
    const std::uint64_t code = recording::load_code(codes + j * bytes, bytes);
    if (code >> bits != 0)
      throw Error(fmt::format("{} {}[{}]: expected a code of {} bits, found {:#x}", where, name, j,
                              bits, code));
  }
}

/// Words of metadata as PTX defines them: two rising indices, or one half of two.
void check_metadata(const std::string& where, const Instruction& i, const std::uint8_t* metadata) {
  for (int g = 0; g < i.groups(); ++g) {
    const int word = metadata[g];
    const bool halves = i.sparsity == Sparsity::one_of_two;
    const bool good = halves ? word == 0x4 || word == 0xE : word < 16 && (word & 3) < word >> 2;
    if (!good)
      throw Error(fmt::format("{} metadata[{}]: expected {}, found {:#x}", where, g,
                              halves ? "0x4 or 0xe" : "two rising indices in four bits", word));
  }
}

void check_records(const RecordedFile& file) {
  const Instruction& i = *file.instruction;
  const std::size_t size = recording::record_bytes(i);
  for (std::int64_t r = 0; r < file.count; ++r) {
    const auto record =
        recording::view_record(i, file.bytes.data() + static_cast<std::size_t>(r) * size);
    const std::string where = where_of(file, r);
    check_codes(where, "a", record.a, i.a, i.kept());
    check_codes(where, "b", record.b, i.b, i.k);
    check_metadata(where, i, record.metadata);
  }
}

/// Checks every column that the instruction fixes.
void check_row(const TableRow& row, const Instruction& i) {
  row.expect("K", std::to_string(i.k));
  row.expect("a", info(i.a).name);
  row.expect("b", info(i.b).name);
  row.expect("c", info(i.c).name);
  row.expect("d", info(i.d).name);
  row.expect("scale", i.block == 0 ? "-" : info(i.scale).name);
  row.expect("block", std::to_string(i.block));
  row.expect("nscale", std::to_string(i.scales()));
  if (i.groups() == 0 && !row.has("nmeta")) return;  // the published index has no such columns
  row.expect("kept", std::to_string(i.kept()));
  row.expect("nmeta", std::to_string(i.groups()));
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// MMA-Sim's rule where the unit has another floor; else nothing.
std::optional<unit::UnitDescription> model_of(const RecordedFile& file) {
  std::optional<unit::UnitDescription> u = unit_of(file.unit, *file.instruction);
  if (!u || u->alignment.zero_c_counts) return std::nullopt;
  unit::take_mmasim_floor(*u);
  return u;
}

void read_index(const std::string& folder, const char* index, const std::string& only,
                RecordFolder& all) {
  std::set<std::string> named;
  for (const TableRow& row : read_table_rows(folder + index)) {
    const std::string &kind = row.text("kind"), &instr = row.text("instr");
    RecordedFile file;
    file.file = row.text("file");
    if (!named.insert(file.file).second)
      throw Error(fmt::format("{}: file '{}' appears twice", row.where, file.file));
    if (!holds(kind + " " + instr, only) && !holds(file.file, only)) continue;
    if (kind == "mfma" || kind == "cvt") {
      all.skipped.push_back(
          {file.file, kind == "cvt" ? "conversions are not dots" : "not a unit of NVIDIA"});
      continue;
    }
    const int found = recording::find_instruction(kind, instr);
    if (found < 0)
      throw Error(
          fmt::format("{}: expected a known instruction, found {} {}", row.where, kind, instr));
    file.instruction = &recording::instructions()[static_cast<std::size_t>(found)];
    check_row(row, *file.instruction);
    file.unit = row.text("unit");
    if (file.unit.ends_with(".json"))
      file.described = unit::read_description(path_below(folder, row, file.unit));
    file.source = row.text("source");
    if (index == std::string_view(kModel)) file.described = model_of(file);
    file.count = row.number("count");
    if (file.count == 0) throw Error(row.where + ": count: expected records, found none");
    const auto bytes = static_cast<std::int64_t>(recording::record_bytes(*file.instruction));
    file.bytes = read_exactly(path_below(folder, row, file.file), file.count * bytes,
                              fmt::format("{} records of {} bytes", file.count, bytes));
    check_records(file);
    all.files.push_back(std::move(file));
  }
}

void name_probes(const std::string& folder, RecordFolder& all) {
  if (!fs::exists(folder + "/probes.tsv")) return;
  std::map<std::string, RecordedFile*> files;
  for (RecordedFile& file : all.files) files[file.file] = &file;
  for (const TableRow& row : read_table_rows(folder + "/probes.tsv")) {
    const auto found = files.find(row.text("file"));
    if (found == files.end()) continue;  // left out, or no dots
    const std::int64_t record = row.number("record");
    if (record >= found->second->count)
      throw Error(fmt::format("{}: expected a record below {}, found {}", row.where,
                              found->second->count, record));
    found->second->probes[record] = row.text("id");
  }
}

// The published hardware outputs: rows name formats, and c and d are float32 in any case.

std::string element_named(const std::string& name) {
  if (name == "fp16") return "f16";
  if (name == "fp32") return "f32";
  if (name == "E4M3") return "e4m3";
  return name == "E5M2" ? "e5m2" : name;
}

/// Hopper's FP8 to float32 was taken with wgmma and C = 0, all else with mma.sync.
const Instruction& hardware_instruction(const TableRow& row, bool wgmma) {
  const std::string in = element_named(row.text("in")), out = element_named(row.text("out"));
  const bool quad_pair = row.text("K") == "4" && in == "f16";
  std::string name = fmt::format("{}k{}.{}.{}.{}",
                                 wgmma       ? "m64n8"
                                 : quad_pair ? "m8n8"
                                             : "m16n8",
                                 row.text("K"), out, in, in);
  if (!wgmma) name += "." + out;
  const int found = recording::find_instruction(wgmma ? "wgmma" : "mma", name);
  if (found < 0)
    throw Error(fmt::format("{}: expected a known instruction, found {}", row.where, name));
  return recording::instructions()[static_cast<std::size_t>(found)];
}

void append(std::vector<std::uint8_t>& bytes, Element e, std::uint64_t code) {
  bytes.resize(bytes.size() + static_cast<std::size_t>(info(e).bytes));
  recording::store_code(bytes.data() + bytes.size() - info(e).bytes, info(e).bytes, code);
}

/// A float32 in the type of C or D: its value, or its NaN.
std::uint64_t narrowed(Element e, std::uint64_t code) {
  if (e == Element::f32) return code;
  const Value v = decode(element_format(Element::f32), code);
  if (v.kind == Class::nan) return 0x7fff;  // of NVIDIA's units
  return encode(element_format(e), v, Rounding{}, Overflow::ieee).code;
}

RecordedFile read_hardware_file(const std::string& folder, const TableRow& row) {
  RecordedFile file;
  file.file = row.text("file");
  file.unit = row.text("gpu");
  file.source = "published outputs";
  const std::string in = element_named(row.text("in")), out = element_named(row.text("out"));
  const bool hopper = file.unit == "H100" || file.unit == "H200";
  const bool wgmma = hopper && out == "f32" && (in == "e4m3" || in == "e5m2");
  file.instruction = &hardware_instruction(row, wgmma);
  const Instruction& i = *file.instruction;
  file.count = row.number("count");
  const std::int64_t operands = std::int64_t{2} * i.k * info(i.a).bytes, record = operands + 8;
  const std::vector<std::uint8_t> raw =
      read_exactly(path_below(folder, row, file.file), file.count * record,
                   fmt::format("{} records of {} bytes", file.count, record));
  for (std::int64_t r = 0; r < file.count; ++r) {
    const std::uint8_t* const at = raw.data() + r * record;
    file.bytes.insert(file.bytes.end(), at, at + operands);
    const std::uint64_t c = wgmma ? 0 : recording::load_code(at + operands, 4);
    const std::uint64_t d = recording::load_code(at + operands + 4, 4);
    append(file.bytes, i.c, narrowed(i.c, c));
    append(file.bytes, i.d, narrowed(i.d, d));
    const Value wide = decode(element_format(Element::f32), d);
    const Value own = decode(element_format(i.d), narrowed(i.d, d));
    if (wide.kind != own.kind ||
        encode(element_format(Element::f32), own, Rounding{}, Overflow::ieee).code !=
            encode(element_format(Element::f32), wide, Rounding{}, Overflow::ieee).code)
      throw Error(where_of(file, r) + ": expected d to be a widened float16");
  }
  check_records(file);
  return file;
}

}  // namespace

Records RecordedFile::records() const {
  Records all(container_layout(*instruction), count);
  const std::size_t size = recording::record_bytes(*instruction);
  for (std::int64_t r = 0; r < count; ++r)
    put_record(*instruction,
               view_record(*instruction, bytes.data() + static_cast<std::size_t>(r) * size), all,
               r);
  return all;
}

bool is_record_folder(const std::string& folder) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{kIndex, kModel, kHardware, "/conversions.tsv"},
      [&](const char* table) { return fs::exists(folder + table); });
}

RecordFolder read_record_folder(const std::string& folder, const std::string& only) {
  RecordFolder all;
  for (const char* index : {kIndex, kModel})
    if (fs::exists(folder + index)) read_index(folder, index, only, all);
  name_probes(folder, all);
  if (!fs::exists(folder + kHardware)) return all;
  for (const TableRow& row : read_table_rows(folder + kHardware)) {
    if (!holds(row.text("file"), only)) continue;
    all.files.push_back(read_hardware_file(folder, row));
  }
  return all;
}

}  // namespace numemu::oracle

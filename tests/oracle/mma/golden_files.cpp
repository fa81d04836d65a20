// The layouts of the golden files, as their README gives them.
#include "tests/oracle/mma/golden_files.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "tests/files.hpp"

namespace numemu::oracle::mma {
namespace {

/// The names the indexes use beside those of the registry.
const Format& format_named(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {
      {"E4M3", "float8_e4m3fn"},  {"E5M2", "float8_e5m2"},    {"e4m3", "float8_e4m3fn"},
      {"fp8", "float8_e4m3fnuz"}, {"bf8", "float8_e5m2fnuz"}, {"e2m1", "float4_e2m1fn"}};
  const auto found = kNames.find(name);
  return find_format(found == kNames.end() ? name : found->second);
}

/// How the unit takes the operand: tf32 and xf32 as float32 where it drops the low bits itself.
const Format& operand_named(const std::string& name, const GoldenUnit& row) {
  const bool truncated = name == "tf32" || name == "xf32";
  if (!truncated) return format_named(name);
  const Format &wide = find_format("float32"), &narrow = find_format("tfloat32");
  return unit::find_unit(row.unit).accepts(wide) ? wide : narrow;
}

std::int64_t container_bytes(const Format& format) {
  const int bits = format.bits + format.container_shift;
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

std::int64_t number(const IndexRow& row, const char* column) { return std::stoll(row.at(column)); }

Batch empty_batch(const IndexRow& row, const GoldenUnit& golden, const char* a, const char* b) {
  Batch batch;
  batch.unit = golden.unit;
  batch.count = number(row, "count");
  batch.k = number(row, "K");
  batch.a_format = &operand_named(row.at(a), golden);
  batch.b_format = &operand_named(row.at(b), golden);
  return batch;
}

std::vector<std::string> fields_of(const std::string& path, const Batch& batch,
                                   const std::vector<std::int64_t>& widths) {
  const std::string bytes = test::read_file(path);
  std::int64_t record = 0;
  for (const std::int64_t width : widths) record += width;
  if (std::ssize(bytes) != record * batch.count)
    throw Error(path + ": expected " + std::to_string(batch.count) + " records of " +
                std::to_string(record) + " bytes, has " + std::to_string(bytes.size()) + " bytes");
  return split_records(bytes, widths);
}

}  // namespace

std::string golden_folder() {
  const char* variable = std::getenv("NUMEMU_SHARED");
  const std::string folder =
      std::string(variable != nullptr ? variable : NUMEMU_SHARED) + "/golden/mma";
  return std::filesystem::is_directory(folder) ? folder : "";
}

std::vector<IndexRow> read_index(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(path + ": cannot read");
  std::vector<std::string> names;
  std::vector<IndexRow> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    IndexRow row;
    std::size_t column = 0;
    for (std::string cell; std::getline(cells, cell, '\t'); ++column) {
      if (rows.empty() && row.empty() && names.size() == column) {
        names.push_back(cell);
      } else {
        row[names.at(column)] = cell;
      }
    }
    if (!row.empty()) rows.push_back(row);
  }
  return rows;
}

std::vector<std::string> split_records(const std::string& bytes,
                                       const std::vector<std::int64_t>& widths) {
  std::vector<std::string> fields(widths.size());
  for (std::size_t at = 0; at < bytes.size();) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      fields[i].append(bytes, at, static_cast<std::size_t>(widths[i]));
      at += static_cast<std::size_t>(widths[i]);
    }
  }
  return fields;
}

std::string converted(const std::string& bytes, const Format& from, const Format& to) {
  const auto in = static_cast<std::size_t>(container_bytes(from));
  const auto out = static_cast<std::size_t>(container_bytes(to));
  std::string result(bytes.size() / in * out, 0);
  for (std::size_t i = 0; i * in < bytes.size(); ++i) {
    std::uint64_t code = 0;
    std::memcpy(&code, bytes.data() + i * in, in);
    code = encode(to, decode(from, code), {}, Overflow::ieee).code;
    std::memcpy(result.data() + i * out, &code, out);
  }
  return result;
}

// a[K] b[K], then c and d in float32: exact widenings where the accumulator is float16, but c is
// rounded first.
Batch read_hardware(const std::string& folder, const IndexRow& row, const GoldenUnit& golden) {
  Batch batch = empty_batch(row, golden, "in", "in");
  batch.result = &format_named(row.at("out"));
  const std::int64_t width = batch.k * container_bytes(*batch.a_format);
  const Format& wide = find_format("float32");
  auto fields = fields_of(folder + "/" + row.at("file"), batch, {width, width, 4, 4});
  batch.a = fields[0];
  batch.b = fields[1];
  if (golden.reading == Reading::zero_c) fields[2].assign(fields[2].size(), 0);
  const bool narrow = batch.result != &wide;
  batch.c = narrow ? converted(fields[2], wide, *batch.result) : fields[2];
  batch.d = narrow ? converted(fields[3], wide, *batch.result) : fields[3];
  if (narrow && converted(batch.d, *batch.result, wide) != fields[3])
    throw Error(row.at("file") + ": d is not a widened " + batch.result->name);
  return batch;
}

// a[K] b[K] c scale_a[nscale] scale_b[nscale] d.
Batch read_model(const std::string& folder, const IndexRow& row, const GoldenUnit& golden) {
  Batch batch = empty_batch(row, golden, "a", "b");
  batch.result = &format_named(row.at("d"));
  const Format& c = format_named(row.at("c"));
  const std::int64_t scales = number(row, "nscale");
  const auto fields = fields_of(
      folder + "/" + row.at("file"), batch,
      {batch.k * container_bytes(*batch.a_format), batch.k * container_bytes(*batch.b_format),
       container_bytes(c), scales, scales, container_bytes(*batch.result)});
  batch.a = fields[0];
  batch.b = fields[1];
  batch.c = &c == batch.result ? fields[2] : converted(fields[2], c, *batch.result);
  batch.scale_a = fields[3];
  batch.scale_b = fields[4];
  batch.d = fields[5];
  return batch;
}

}  // namespace numemu::oracle::mma

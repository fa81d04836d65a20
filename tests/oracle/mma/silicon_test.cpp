// The vectors taken from an Emerald Rapids Xeon, bit for bit, payloads of NaN included.
#include <cstring>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/oracle/mma/silicon_files.hpp"
#include "tests/oracle/mma/table.hpp"
#include "tests/oracle/mma/vcvtneps2bf16.hpp"

namespace numemu::oracle::mma::silicon_test {
namespace {

void prove(std::span<const SiliconFile> files, const std::string& folder,
           std::initializer_list<Way> ways) {
  Table table;
  for (const SiliconFile& file : files) {
    try {
      const Batch batch = read_recorded(file, folder);
      for (const Way way : ways) {
        if (way == Way::fast_blocks && batch.m > 1) continue;
        table.add(std::string(file.file), batch.unit, way, compare(batch, way, NanMatch::bits));
      }
    } catch (const Error& error) {
      table.fail(std::string(file.file), error.what());
    }
  }
  table.print();
  WARN(table.totals());
  CHECK(table.records() > 0);
  CHECK(table.mismatches() == 0);
  CHECK(table.failures() == 0);
}

TEST_CASE("silicon vectors: reference", "[fast]") {
  prove(silicon_files(), silicon_folder(), {Way::reference});
}

TEST_CASE("silicon vectors: fast path", "[fast]") {
  prove(silicon_files(), silicon_folder(), {Way::fast, Way::fast_blocks});
}

TEST_CASE("vectors of an emulator of Arm: reference and fast path", "[fast]") {
  prove(emulated_files(), emulated_folder(), {Way::reference, Way::fast, Way::fast_blocks});
}

std::string halves(std::initializer_list<std::uint16_t> codes) {
  std::string bytes;
  for (const std::uint16_t code : codes)
    bytes.append({static_cast<char>(code), static_cast<char>(code >> 8)});
  return bytes;
}

// Measured on the same machine: 2^-126 - 2^-151 stays 2^-126, 2^-126 - 2^-150 becomes 0. The files
// hold no such case.
TEST_CASE("silicon vectors: TDPBF16PS judges after rounding whether a sum is tiny", "[fast]") {
  Batch batch;
  batch.unit = "intel.emr.tdpbf16ps.bf16.f32";
  batch.count = 2;
  batch.k = 4;
  batch.a_format = batch.b_format = &find_format("bfloat16");
  batch.result = &find_format("float32");
  // 2^-63 x 2^-63 and 2^-75 x -2^-76, then x -2^-75.
  batch.a = halves({0x2000, 0, 0x1a00, 0, 0x2000, 0, 0x1a00, 0});
  batch.b = halves({0x2000, 0, 0x9980, 0, 0x2000, 0, 0x9a00, 0});
  batch.c = std::string(8, 0);
  batch.d = halves({0, 0x0080, 0, 0});
  for (const Way way : {Way::reference, Way::fast, Way::fast_blocks}) {
    const Tally tally = compare(batch, way, NanMatch::bits);
    INFO(to_string(way) << ": " << tally.first);
    CHECK(tally.mismatches() == 0);
  }
}

TEST_CASE("silicon vectors: VCVTNEPS2BF16 is the conversion with subnormals flushed", "[fast]") {
  const std::string bytes = test::read_file(silicon_folder() + "/vcvtneps2bf16.bin");
  constexpr std::size_t kRecord = sizeof(std::uint32_t) + sizeof(std::uint16_t);
  REQUIRE(bytes.size() % kRecord == 0);
  REQUIRE(!bytes.empty());
  std::int64_t mismatches = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
    std::uint32_t x = 0;
    std::uint16_t y = 0;
    std::memcpy(&x, &bytes[at], sizeof x);
    std::memcpy(&y, &bytes[at + sizeof x], sizeof y);
    mismatches += bfloat16_of(x) != y;
  }
  WARN("vcvtneps2bf16.bin: " << bytes.size() / kRecord << " records, " << mismatches
                             << " mismatches");
  CHECK(mismatches == 0);
}

}  // namespace
}  // namespace numemu::oracle::mma::silicon_test

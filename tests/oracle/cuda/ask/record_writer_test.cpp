// Records keep every field of the dots they are taken from, and files hold what was written.
#include "tests/oracle/cuda/ask/record_writer.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/recording/whole_file.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"
#include "tests/files.hpp"
#include "tests/oracle/cuda/ask/large_run.hpp"

namespace numemu::oracle::recording::record_writer_test {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

/// Every byte of every array differs from its neighbours.
Batch numbered(const Instruction& i, int tiles) {
  Batch batch(i, tiles);
  unsigned value = 1;
  for (auto* array :
       {&batch.a, &batch.b, &batch.c, &batch.metadata, &batch.scale_a, &batch.scale_b, &batch.d})
    for (std::uint8_t& byte : *array) byte = static_cast<std::uint8_t>(value = value * 75 % 65537);
  return batch;
}

TEST_CASE("a record holds the fields of its dot in the order of the layout", "[fast]") {
  const auto [kind, name] = GENERATE(
      table<const char*, const char*>({{"mma", "m8n8k4.f64.f64.f64.f64"},
                                       {"mma", "m16n8k16.f16.f16.f16.f16"},
                                       {"mmasp", "m16n8k16.f32.tf32.tf32.f32"},
                                       {"wgmmasp", "m64n8k64.f32.e4m3.e5m2"},
                                       {"mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"}}));
  const Instruction& i = instruction(kind, name);
  const Batch batch = numbered(i, 3);
  const int tile = 2, row = 5, column = 3;
  std::string bytes = "before";
  append_record(bytes, batch, tile, row, column);
  REQUIRE(bytes.size() == 6 + record_bytes(i));
  const RecordView r = view_record(i, reinterpret_cast<const std::uint8_t*>(bytes.data()) + 6);
  const auto same = [](const std::uint8_t* got, const std::vector<std::uint8_t>& array, int line,
                       int length) {
    return length == 0 ||
           std::memcmp(got, array.data() + line * length, static_cast<std::size_t>(length)) == 0;
  };
  CHECK(same(r.a, batch.a, tile * i.m + row, i.kept() * info(i.a).bytes));
  CHECK(same(r.b, batch.b, tile * i.n + column, i.k * info(i.b).bytes));
  CHECK(same(r.c, batch.c, (tile * i.m + row) * i.n + column, info(i.c).bytes));
  CHECK(same(r.scale_a, batch.scale_a, tile * i.m + row, i.scales()));
  CHECK(same(r.scale_b, batch.scale_b, tile * i.n + column, i.scales()));
  CHECK(same(r.metadata, batch.metadata, tile * i.m + row, i.groups()));
  CHECK(same(r.d, batch.d, (tile * i.m + row) * i.n + column, info(i.d).bytes));
  const std::uint8_t* end = reinterpret_cast<const std::uint8_t*>(bytes.data()) + bytes.size();
  CHECK(r.b - r.a == i.kept() * info(i.a).bytes);
  CHECK(end - r.d == info(i.d).bytes);
}

TEST_CASE("sampled dots reach every row and column, kinds in equal numbers", "[fast]") {
  for (const Instruction& i : instructions()) {
    INFO(name(i.kind) << " " << name(i));
    const int count = record_count(i);
    CHECK(count % kDataKinds == 0);
    CHECK(static_cast<std::size_t>(count) * record_bytes(i) <= kRecordBytes);
    CHECK(static_cast<std::size_t>(count + kDataKinds) * record_bytes(i) > kRecordBytes);
    std::set<int> rows, columns;
    std::set<std::pair<int, int>> places;
    std::map<std::int64_t, std::set<int>> columns_of_kind;
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const DotPlace at = record_place(i, tile);
      REQUIRE((at.row >= 0 && at.row < i.m && at.column >= 0 && at.column < i.n));
      rows.insert(at.row);
      columns.insert(at.column);
      places.emplace(at.row, at.column);
      columns_of_kind[tile % kDataKinds].insert(at.column);
    }
    CHECK(static_cast<int>(rows.size()) == i.m);
    CHECK(static_cast<int>(columns.size()) == i.n);
    CHECK(static_cast<int>(places.size()) == std::min(count, i.m * i.n));
    for (const auto& entry : columns_of_kind)
      CHECK(static_cast<int>(entry.second.size()) >= i.n - 1);
  }
}

TEST_CASE("records do not depend on how the run is cut into batches", "[fast]") {
  const Instruction& i = instruction("mma", "m8n8k4.f64.f64.f64.f64");
  const int count = record_count(i);
  const auto records = [&i, count](const std::vector<int>& sizes) {
    std::string bytes;
    std::int64_t first = 0;
    for (const int size : sizes) {
      Batch batch(i, size);
      fill(batch, 3, 0, first);
      append_records(bytes, batch, first);
      first += size;
    }
    CHECK(first > count);
    return bytes;
  };
  const std::string whole = records({count + 50});
  CHECK(whole.size() == static_cast<std::size_t>(count) * record_bytes(i));
  CHECK(whole == records({1, 70, count - 80, 60, 10}));
}

TEST_CASE("records and probes are written whole, with their tables", "[fast]") {
  const TemporaryFolder folder;
  const std::string out = folder / "new/out";
  const Instruction& sparse = instruction("mmasp", "m16n8k32.f32.f16.f16.f32");
  const Instruction& scaled = instruction("tc5bs", "m128n8k64.block16.f32.e2m1.e2m1.ue4m3");
  std::string records, scaled_records;
  append_records(records, numbered(sparse, 30), 0);
  append_records(scaled_records, numbered(scaled, 20), 0);
  std::vector<Probe> probes(2);
  probes[0].id = "Z1";
  probes[0].question = "zero-exponent";
  probes[1].id = "sign.2";
  probes[1].question = "sign-of-zero";
  const Batch answered = numbered(sparse, 2);

  RecordWriter writer(out, "H100", "NVIDIA H100 PCIe, driver 550.54");
  writer.add_records(sparse, records);
  writer.add_records(scaled, scaled_records);
  writer.add_probes(probes, answered);
  writer.finish();

  CHECK(read_whole_file(out + "/index.tsv") ==
        "file\tunit\tkind\tinstr\tK\ta\tb\tc\td\tscale\tblock\tnscale\tcount\tsource\tkept\tnmeta\n"
        "records/mmasp__m16n8k32_f32_f16_f16_f32.bin\tH100\tmmasp\tm16n8k32.f32.f16.f16.f32\t32\t"
        "f16\tf16\tf32\tf32\t-\t0\t0\t30\tNVIDIA H100 PCIe, driver 550.54\t16\t8\n"
        "records/tc5bs__m128n8k64_block16_f32_e2m1_e2m1_ue4m3.bin\tH100\ttc5bs\t"
        "m128n8k64.block16.f32.e2m1.e2m1.ue4m3\t64\te2m1\te2m1\tf32\tf32\tue4m3\t16\t4\t20\t"
        "NVIDIA H100 PCIe, driver 550.54\t64\t0\n"
        "probes/mmasp__m16n8k32_f32_f16_f16_f32.bin\tH100\tmmasp\tm16n8k32.f32.f16.f16.f32\t32\t"
        "f16\tf16\tf32\tf32\t-\t0\t0\t2\tNVIDIA H100 PCIe, driver 550.54\t16\t8\n");
  CHECK(read_whole_file(out + "/records/mmasp__m16n8k32_f32_f16_f16_f32.bin") == records);
  CHECK(read_whole_file(out + "/records/tc5bs__m128n8k64_block16_f32_e2m1_e2m1_ue4m3.bin") ==
        scaled_records);
  std::string expected;
  for (const int tile : {0, 1}) append_record(expected, answered, tile, 0, 0);
  CHECK(read_whole_file(out + "/probes/mmasp__m16n8k32_f32_f16_f16_f32.bin") == expected);
  CHECK(read_whole_file(out + "/probes.tsv") ==
        "file\trecord\tid\tquestion\n"
        "probes/mmasp__m16n8k32_f32_f16_f16_f32.bin\t0\tZ1\tzero-exponent\n"
        "probes/mmasp__m16n8k32_f32_f16_f16_f32.bin\t1\tsign.2\tsign-of-zero\n");
  for (const auto& entry : fs::recursive_directory_iterator(out))
    CHECK(entry.path().extension() != ".part");
}

TEST_CASE("what cannot be written names its path", "[fast]") {
  const TemporaryFolder folder;
  const Instruction& i = instruction("mma", "m16n8k8.f32.f16.f16.f32");
  test::write_file(folder / "file", "x");
  RecordWriter writer(folder / "file", "H100", "x");
  CHECK(holds(message([&] { writer.add_records(i, ""); }),
              "file/records/mma__m16n8k8_f32_f16_f16_f32.bin: cannot make its folder"));
  RecordWriter fine(folder / "out", "H100", "x");
  CHECK(holds(message([&] { fine.add_records(i, "abc"); }),
              "expected records of 40 bytes, got 3 bytes"));
  CHECK(holds(message([&] { fine.add_probes({}, Batch(i, 1)); }), "expected 0 tiles, got 1"));
  RecordWriter tabbed(folder / "out", "H\t100", "x");
  tabbed.add_records(i, "");
  CHECK(holds(message([&] { tabbed.finish(); }), "'H\t100'"));
  fs::create_directories(folder / "out/index.tsv/in_the_way");
  CHECK(holds(message([&] { fine.finish(); }), "out/index.tsv: cannot rename"));
}

// What is kept of one GPU stays small, at most 8 MB in all; of a Hopper 0.5 MB are conversions and
// 1.8 MB tables.
TEST_CASE("records and hashes of every Hopper instruction stay small", "[fast]") {
  std::size_t records = 0, hashes = 0, count = 0;
  for (const Instruction& i : instructions()) {
    if (!has(i, 90)) continue;
    ++count;
    records += static_cast<std::size_t>(record_count(i)) * record_bytes(i);
    hashes += static_cast<std::size_t>(large_run_tiles(i)) * static_cast<std::size_t>(i.m * i.n) /
              kDotsPerHash * 8;
  }
  CAPTURE(count, records, hashes);
  CHECK(count > 100);
  CHECK(records + hashes < 5700000);
}

}  // namespace
}  // namespace numemu::oracle::recording::record_writer_test

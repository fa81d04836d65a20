// The instructions of this CPU against the units that emulate them, on fresh vectors each way.
#include <bit>
#include <cstring>

#include "formats/float_guard.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/live_data.hpp"
#include "tests/oracle/mma/table.hpp"
#include "tests/oracle/mma/vcvtneps2bf16.hpp"
#include "tests/oracle/mma/x86_features.hpp"
#include "tests/oracle/mma/x86_instructions.hpp"

namespace numemu::oracle::mma::emr_live_test {
namespace {

struct Live {
  const char *name, *unit, *a, *b, *result;  ///< formats; result nullptr: int32
  std::int64_t k;
  bool (*available)();
  TileInstruction run;
};

// clang-format off
constexpr Live kLive[] = {
    {"TDPBF16PS",   "intel.emr.tdpbf16ps.bf16.f32",  "bfloat16", "bfloat16", "float32", 32, has_amx_bf16,    run_tdpbf16ps},
    {"TDPBSSD",     "intel.emr.tdpbssd.s8.s32",      "int8",     "int8",     nullptr,   64, has_amx_int8,    run_tdpbssd},
    {"TDPBSUD",     "intel.emr.tdpbsud.s8xu8.s32",   "int8",     "uint8",    nullptr,   64, has_amx_int8,    run_tdpbsud},
    {"TDPBUSD",     "intel.emr.tdpbusd.u8xs8.s32",   "uint8",    "int8",     nullptr,   64, has_amx_int8,    run_tdpbusd},
    {"TDPBUUD",     "intel.emr.tdpbuud.u8.s32",      "uint8",    "uint8",    nullptr,   64, has_amx_int8,    run_tdpbuud},
    {"VDPBF16PS",   "intel.emr.vdpbf16ps.bf16.f32",  "bfloat16", "bfloat16", "float32", 2,  has_avx512_bf16, run_vdpbf16ps},
    {"VPDPBUSD",    "intel.emr.vpdpbusd.u8xs8.s32",  "uint8",    "int8",     nullptr,   4,  has_avx512_vnni, run_vpdpbusd},
    {"VPDPBUSDS",   "intel.emr.vpdpbusds.u8xs8.s32", "uint8",    "int8",     nullptr,   4,  has_avx512_vnni, run_vpdpbusds},
    {"VPDPWSSD",    "intel.emr.vpdpwssd.s16.s32",    "int16",    "int16",    nullptr,   2,  has_avx512_vnni, run_vpdpwssd},
    {"VPDPWSSDS",   "intel.emr.vpdpwssds.s16.s32",   "int16",    "int16",    nullptr,   2,  has_avx512_vnni, run_vpdpwssds},
    {"VPMADDUBSW",  "intel.emr.vpmaddubsw.u8xs8.s32", "uint8",   "int8",     nullptr,   4,  has_avx2,        run_vpmaddubsw},
    {"VPDPBUSD, VEX",  "intel.emr.vpdpbusd.u8xs8.s32",  "uint8", "int8",     nullptr,   4,  has_avx_vnni,    run_vex_vpdpbusd},
    {"VPDPBUSDS, VEX", "intel.emr.vpdpbusds.u8xs8.s32", "uint8", "int8",     nullptr,   4,  has_avx_vnni,    run_vex_vpdpbusds},
    {"VPDPWSSD, VEX",  "intel.emr.vpdpwssd.s16.s32",    "int16", "int16",    nullptr,   2,  has_avx_vnni,    run_vex_vpdpwssd},
    {"VPDPWSSDS, VEX", "intel.emr.vpdpwssds.s16.s32",   "int16", "int16",    nullptr,   2,  has_avx_vnni,    run_vex_vpdpwssds},
    {"VFMADD231PH", "intel.emr.vfmadd231ph.f16.f16", "float16",  "float16",  "float16", 1,  has_avx512_fp16, run_vfmadd231ph},
};
// clang-format on

/// Tiles of every kind in turn, their D from the CPU.
Batch run_tiles(const Live& live, std::int64_t tiles, std::uint64_t seed) {
  Batch batch;
  batch.unit = live.unit;
  batch.count = tiles;
  batch.m = batch.n = 16;
  batch.k = live.k;
  batch.a_format = &find_format(live.a);
  batch.b_format = &find_format(live.b);
  batch.b_is_k_by_n = true;
  batch.result = live.result == nullptr ? nullptr : &find_format(live.result);
  const TileShape shape{16, 16, live.k};
  Words words(seed);
  const FloatGuard guard;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const int kind = static_cast<int>(i % kKinds);
    const TileData tile = batch.result != nullptr
                              ? float_tile(*batch.a_format, *batch.result, shape, kind, words)
                              : integer_tile(batch.a_format->bits, shape, kind, words);
    std::string d(tile.c.size(), 0);
    live.run(tile.a.data(), tile.b.data(), tile.c.data(), d.data());
    batch.a += tile.a;
    batch.b += tile.b;
    batch.c += tile.c;
    batch.d += d;
  }
  return batch;
}

/// Every instruction this CPU has, on at least `dots` outputs; the others are named.
void prove(std::int64_t dots, Way way, std::uint64_t seed) {
  const std::int64_t tiles = (dots / 256 / kKinds + 1) * kKinds;
  Table table;
  std::string absent;
  for (const Live& live : kLive) {
    if (!live.available()) {
      absent += std::string(" ") + live.name;
      continue;
    }
    const Batch batch = run_tiles(live, tiles, ++seed);
    table.add(live.name, batch.unit, way, compare(batch, way, NanMatch::bits));
  }
  table.print();
  WARN(table.totals());
  CHECK(table.mismatches() == 0);
  // ctest shows a test as skipped by this word, so it must not hide a difference.
  const bool clean = table.mismatches() == 0;
  if (!absent.empty())
    WARN((clean ? "skipped: " : "absent: ") << "this CPU or its kernel has no" << absent);
}

TEST_CASE("live silicon: a few vectors by the reference", "[fast][silicon]") {
  prove(2000, Way::reference, 100);
}

TEST_CASE("live silicon: fifty thousand vectors by the fast path", "[fast][silicon]") {
  prove(50000, Way::fast, 200);
}

TEST_CASE("live silicon: a million vectors by the reference", "[slow][silicon]") {
  prove(1000000, Way::reference, 300);
}

TEST_CASE("live silicon: a million vectors by the fast path", "[slow][silicon]") {
  prove(1000000, Way::fast, 400);
}

TEST_CASE("live silicon: a million vectors of VCVTNEPS2BF16", "[fast][silicon]") {
  if (!has_avx512_bf16()) {
    WARN("skipped: this CPU or its kernel has no VCVTNEPS2BF16");
    return;
  }
  const Format& float32 = find_format("float32");
  Words words(500);
  std::int64_t records = 0, mismatches = 0;
  for (int i = 0; i < 4000; ++i) {
    const TileData tile = float_tile(float32, float32, {16, 16, 1}, i % kKinds, words);
    float x[256];
    std::uint16_t y[256];
    std::memcpy(x, tile.c.data(), sizeof x);
    run_vcvtneps2bf16(x, y, 256);
    for (int j = 0; j < 256; ++j)
      mismatches += bfloat16_of(std::bit_cast<std::uint32_t>(x[j])) != y[j];
    records += 256;
  }
  WARN("VCVTNEPS2BF16: " << records << " records, " << mismatches << " mismatches");
  CHECK(mismatches == 0);
}

}  // namespace
}  // namespace numemu::oracle::mma::emr_live_test

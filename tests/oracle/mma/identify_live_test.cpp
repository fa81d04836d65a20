// The instructions of this CPU and its Eigen, identified as if nobody knew them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "emu/oracle/identify/identify.hpp"
#include "emu/oracle/identify/summation_tree.hpp"
#include "emu/unit/unit.hpp"
#include "formats/float_guard.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/x86_features.hpp"
#include "tests/oracle/mma/x86_instructions.hpp"

namespace numemu::oracle::mma::identify_live_test {
namespace {

struct Live {
  const char *name, *unit;
  int k;
  bool (*available)();
  TileInstruction run;
};

// clang-format off
constexpr Live kLive[] = {
    {"TDPBF16PS",   "intel.emr.tdpbf16ps.bf16.f32",  32, has_amx_bf16,    run_tdpbf16ps},
    {"TDPBSSD",     "intel.emr.tdpbssd.s8.s32",      64, has_amx_int8,    run_tdpbssd},
    {"TDPBUSD",     "intel.emr.tdpbusd.u8xs8.s32",   64, has_amx_int8,    run_tdpbusd},
    {"VDPBF16PS",   "intel.emr.vdpbf16ps.bf16.f32",  2,  has_avx512_bf16, run_vdpbf16ps},
    {"VPDPBUSD",    "intel.emr.vpdpbusd.u8xs8.s32",  4,  has_avx512_vnni, run_vpdpbusd},
    {"VPDPBUSDS",   "intel.emr.vpdpbusds.u8xs8.s32", 4,  has_avx512_vnni, run_vpdpbusds},
    {"VPDPWSSD",    "intel.emr.vpdpwssd.s16.s32",    2,  has_avx512_vnni, run_vpdpwssd},
    {"VPDPWSSDS",   "intel.emr.vpdpwssds.s16.s32",   2,  has_avx512_vnni, run_vpdpwssds},
    {"VFMADD231PH", "intel.emr.vfmadd231ph.f16.f16", 1,  has_avx512_fp16, run_vfmadd231ph},
};
// clang-format on

constexpr int kTile = 16;

std::size_t bytes_of(const Format* format) {
  return format == nullptr ? 4 : static_cast<std::size_t>((format->bits + 7) / 8);
}

/// The dot is element (0, 0) of a tile; all else is zero.
std::uint64_t run_dot(const Live& live, const Ports& ports, const Dot& dot) {
  const std::size_t a_bytes = bytes_of(ports.a), b_bytes = bytes_of(ports.b);
  const std::size_t d_bytes = bytes_of(ports.d), k = static_cast<std::size_t>(ports.k);
  std::vector<std::uint8_t> a(kTile * k * a_bytes), b(k * kTile * b_bytes);
  std::vector<std::uint8_t> c(kTile * kTile * d_bytes), d(c.size());
  for (std::size_t p = 0; p < k; ++p) {
    std::memcpy(a.data() + p * a_bytes, &dot.a[p], a_bytes);
    std::memcpy(b.data() + p * kTile * b_bytes, &dot.b[p], b_bytes);
  }
  std::memcpy(c.data(), &dot.c, d_bytes);
  const FloatGuard guard;
  live.run(a.data(), b.data(), c.data(), d.data());
  std::uint64_t code = 0;
  std::memcpy(&code, d.data(), d_bytes);
  return code;
}

TEST_CASE("identify: the instructions of this CPU", "[fast][silicon]") {
  std::string absent, table;
  for (const Live& live : kLive) {
    if (!live.available()) {
      absent += std::string(" ") + live.name;
      continue;
    }
    INFO(live.name);
    const Ports ports = ports_of(*unit::find_unit(live.unit).description(), live.k);
    const FoundRule finding =
        identify(ports, [&](const Dot& dot) { return run_dot(live, ports, dot); });
    CHECK(finding.fits);
    CHECK(std::count(finding.presets.begin(), finding.presets.end(), live.unit) == 1);
    table += std::string(live.name) + ": " + finding.description.name + ", " +
             std::to_string(finding.answered.size()) + " questions\n";
  }
  if (!table.empty()) WARN(table);
  if (!absent.empty()) WARN("skipped: this CPU or its kernel has no" << absent);
}

TEST_CASE("identify: without the catalogue, the bfloat16 instructions of this CPU",
          "[slow][silicon]") {
  for (const Live& live : kLive) {
    const unit::UnitDescription& u = *unit::find_unit(live.unit).description();
    if (!live.available() || u.a->name != "bfloat16") continue;
    INFO(live.name);
    const Ports ports = ports_of(u, live.k);
    const FoundRule finding = identify(
        ports, [&](const Dot& dot) { return run_dot(live, ports, dot); }, {.catalogue = false});
    CHECK(finding.fits);
    CHECK(finding.description.subnormals.flush_inputs);
    CHECK(finding.description.nan == unit::NanRule::x86);
  }
}

TEST_CASE("identify: the order of Eigen's float32 product on this CPU is a tree", "[fast]") {
  constexpr int kSize = 48, kDepth = 64;
  const unit::Unit& eigen = unit::find_unit("host.eigen.f32");
  Ports ports;
  ports.a = ports.b = ports.c = ports.d = &find_format("float32");
  ports.k = kDepth;
  std::vector<float> a(kSize * kDepth), b(kDepth * kSize), d(kSize * kSize);
  const unit::Gather rows = unit::Gather::matrix(kSize, kDepth);
  const unit::Gather columns = unit::Gather::matrix(kSize, kDepth);
  unit::Gemm gemm;
  gemm.m = gemm.n = kSize;
  gemm.k = kDepth;
  gemm.a = {ports.a, a.data(), &rows};
  gemm.b = {ports.b, b.data(), &columns};
  gemm.d = d.data();
  const Device device = [&](const Dot& dot) {
    for (std::size_t p = 0; p < kDepth; ++p) {
      a[p] = std::bit_cast<float>(static_cast<std::uint32_t>(dot.a[p]));
      b[p] = std::bit_cast<float>(static_cast<std::uint32_t>(dot.b[p]));
    }
    eigen.multiply(gemm);
    return std::uint64_t{std::bit_cast<std::uint32_t>(d[0])};
  };
  const auto tree = read_summation_tree(ports, device);
  REQUIRE(tree);
  CHECK(tree->leaves() == kDepth);
  WARN("Eigen, K = 64: " << order_words(*tree) << "\n" << to_string(*tree));
}

}  // namespace
}  // namespace numemu::oracle::mma::identify_live_test

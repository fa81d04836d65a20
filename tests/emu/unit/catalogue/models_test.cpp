// The models of the table: the numbers of specs/matrix-units.md, typed in again.
#include "emu/unit/catalogue/models.hpp"

#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"

namespace models_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

const UnitDescription& of(std::string_view name) { return *find_unit(name).description(); }

}  // namespace

TEST_CASE("models: NVIDIA's steps, bits and registers", "[fast]") {
  struct Row {
    const char* name;
    int k, group, fraction_bits;
    const char* accumulator;
  };
  for (const Row& row : {Row{"nvidia.v100.mma.f16.f32", 4, 4, 23, "float32"},
                         {"nvidia.v100.mma.f16.f16", 4, 4, 23, "float16"},
                         {"nvidia.t4.mma.f16.f32", 8, 8, 24, "float32"},
                         {"nvidia.t4.mma.k4.f16.f32", 4, 4, 24, "float32"},
                         {"nvidia.a100.mma.f16.f32", 16, 8, 24, "float32"},
                         {"nvidia.a100.mma.f16.f16", 16, 8, 24, "float16"},
                         {"nvidia.a2.mma.bf16.f32", 16, 8, 24, "float32"},
                         {"nvidia.a100.mma.tf32.f32", 8, 4, 24, "float32"},
                         {"nvidia.ada.mma.f16.f32", 16, 8, 24, "float32"},
                         {"nvidia.ada.mma.e4m3xe5m2.f32", 32, 16, 13, "e8m13"},
                         {"nvidia.l40s.mma.e5m2.f32", 32, 16, 13, "e8m13"},
                         {"nvidia.ada.mma.e4m3.f16", 32, 16, 13, "float16"},
                         {"nvidia.h100.mma.f16.f32", 16, 16, 25, "float32"},
                         {"nvidia.h200.wgmma.bf16.f32", 16, 16, 25, "float32"},
                         {"nvidia.h100.wgmma.tf32.f32", 8, 8, 25, "float32"},
                         {"nvidia.h100.mma.k4.tf32.f32", 4, 4, 25, "float32"},
                         {"nvidia.h100.wgmma.e4m3.f32", 32, 32, 13, "e8m13"},
                         {"nvidia.h200.wgmma.e5m2xe4m3.f16", 32, 32, 13, "float16"},
                         {"nvidia.b200.tcgen05.f16.f32", 16, 16, 25, "float32"},
                         {"nvidia.b200.tcgen05.e4m3.f32", 32, 32, 25, "float32"},
                         {"nvidia.b200.tcgen05.e4m3.f16", 32, 32, 25, "float16"},
                         {"nvidia.b200.tcgen05.e3m2xe2m1.f32", 32, 32, 25, "float32"},
                         {"nvidia.rtxblackwell.mma.e4m3.f32", 32, 32, 25, "float32"},
                         {"nvidia.b200.tcgen05.e4m3.f32.mx32", 32, 32, 25, "float32"},
                         {"nvidia.b200.tcgen05.k32.e2m1.f32.mx32", 32, 32, 25, "float32"},
                         {"nvidia.b200.tcgen05.e2m1.f32.mx32", 64, 64, 35, "float32"},
                         {"nvidia.b200.tcgen05.e2m1.f32.nv16", 64, 64, 35, "float32"}}) {
    const UnitDescription& u = of(row.name);
    INFO(row.name);
    CHECK(u.core == CoreKind::fused);
    CHECK(u.k == row.k);
    CHECK(u.group == row.group);
    CHECK(u.alignment.fraction_bits == row.fraction_bits);
    CHECK(u.alignment.rounding == RoundingMode::rtz);
    CHECK(u.alignment.zero_exponent == -126);
    CHECK(u.c_entry == CEntry::in_alignment);
    CHECK(u.accumulator.format->name == row.accumulator);
    const bool half = u.accumulator.format->name == "float16";
    CHECK(u.accumulator.rounding.mode == (half ? RoundingMode::rne : RoundingMode::rtz));
    CHECK(u.accumulator.overflow_to_infinity == !half);
    CHECK(u.nan_code == (half ? 0x7fff : 0x7fffffff));
  }
}

TEST_CASE("models: FP8 mma.sync is lowered where the chip has no such unit", "[fast]") {
  for (const char* chip : {"h100", "h200", "b200"}) {
    for (const char* result : {"f32", "f16"}) {
      const UnitDescription& u = of("nvidia." + std::string(chip) + ".mma.e4m3xe5m2." + result);
      CHECK(u.k == 32);
      CHECK(u.group == 16);
      CHECK(u.alignment.fraction_bits == 25);
      CHECK(u.order == StepOrder::pairs_mod4);
      CHECK(u.c_entry == CEntry::after_rounding);
      CHECK(u.c_rounding == Rounding{});
    }
  }
}

TEST_CASE("models: scales", "[fast]") {
  const auto scaling = [](const char* name) { return of(name).scaling; };
  CHECK(scaling("nvidia.b200.tcgen05.e4m3.f32.mx32").point == Scaling::Point::exponents);
  CHECK(scaling("nvidia.b200.tcgen05.e4m3.f32.mx32").block == 32);
  CHECK(scaling("nvidia.b200.tcgen05.e2m1.f32.mx16").block == 16);
  CHECK(scaling("nvidia.b200.tcgen05.e2m1.f32.mx16").format->name == "float8_e8m0fnu");
  CHECK(scaling("nvidia.b200.tcgen05.e2m1.f32.nv16").point == Scaling::Point::groups);
  CHECK(scaling("nvidia.b200.tcgen05.e2m1.f32.nv16").format->name == "float8_e4m3fn");
  CHECK(scaling("neutral.exact.mx32").point == Scaling::Point::exponents);
}

TEST_CASE("models: AMD", "[fast]") {
  CHECK(of("amd.mi100.mfma.f16.f32").group == 4);
  CHECK(of("amd.mi100.mfma.bf16.f32").group == 2);
  CHECK(of("amd.mi200.mfma.f16.f32").group == 4);
  CHECK(of("amd.mi200.mfma_1k.bf16.f32").group == 4);
  CHECK(of("amd.mi200.mfma.bf16.f32").group == 2);
  const UnitDescription& cdna2 = of("amd.mi200.mfma.f16.f32");
  CHECK(cdna2.core == CoreKind::tree);
  CHECK(cdna2.subnormals.flush_inputs);
  CHECK(cdna2.subnormals.inputs_to_plus_zero);
  CHECK(cdna2.subnormals.flush_c);
  CHECK(cdna2.subnormals.flush_results);
  for (const auto& [name, group, parts] : {std::tuple{"amd.mi300.mfma.f16.f32", 8, 1},
                                           {"amd.mi300.mfma.k4.bf16.f32", 4, 1},
                                           {"amd.mi300.mfma.xf32.f32", 4, 1},
                                           {"amd.mi300.mfma.e4m3fnuzxe5m2fnuz.f32", 16, 2}}) {
    const UnitDescription& u = of(name);
    INFO(name);
    CHECK(u.group == group);
    CHECK(u.alignment.parts == parts);
    CHECK(u.alignment.fraction_bits == 24);
    CHECK_FALSE(u.alignment.floor);
    CHECK(u.c_entry == CEntry::after_alignment);
    CHECK(u.second.fraction_bits == 31);
    CHECK(u.second.c_fraction_bits == 24);
    CHECK(u.second.c_dropped == (parts == 2 ? std::optional(25) : std::nullopt));
    CHECK(u.products_overflow);
    CHECK(u.accumulator.rounding == Rounding{});
  }
}

TEST_CASE("models: Intel, Arm and chains", "[fast]") {
  const UnitDescription& amx = of("intel.emr.tdpbf16ps.bf16.f32");
  CHECK(amx.k == 32);
  CHECK(amx.chain.chains == 2);
  CHECK(amx.c_entry == CEntry::after_rounding);
  CHECK(amx.nan_code == 0xffc00000);
  CHECK_FALSE(amx.subnormals.tiny_before_rounding);
  const UnitDescription& avx = of("intel.emr.vdpbf16ps.bf16.f32");
  CHECK(avx.order == StepOrder::odd_first);
  CHECK(avx.c_entry == CEntry::in_alignment);
  const UnitDescription& half = of("intel.emr.vfmadd231ph.f16.f16");
  CHECK(half.nan_code == 0xfe00);
  CHECK_FALSE(half.subnormals.flush_inputs);
  CHECK(of("intel.emr.tdpbssd.s8.s32").accumulator.integer == IntegerOverflow::wrap);
  CHECK(of("intel.emr.vpdpbusds.u8xs8.s32").accumulator.integer == IntegerOverflow::saturate_once);
  CHECK(of("intel.emr.vpdpbusds.u8xs8.s32").k == 4);
  CHECK(of("intel.emr.vpdpwssds.s16.s32").a->bits == 16);
  CHECK(of("intel.emr.vpdpwssds.s16.s32").k == 2);
  const UnitDescription& pairs = of("intel.emr.vpmaddubsw.u8xs8.s32");
  CHECK(pairs.accumulator.bits == 16);
  CHECK(pairs.accumulator.integer == IntegerOverflow::saturate_once);
  CHECK(pairs.outer.every == 2);
  CHECK(pairs.outer.accumulator.integer == IntegerOverflow::wrap);
  CHECK(of("arm.neoverse.smmla.s8.s32").k == 8);
  const UnitDescription& bulk = of("riscv.zvbdot.vfwbdot.k8.bf16.f32");
  CHECK(bulk.alignment.fraction_bits == 26);
  CHECK(bulk.c_rounding.mode == RoundingMode::rodd);
  CHECK_FALSE(bulk.alignment.zero_exponent.has_value());
  CHECK(of("arm.neoverse.fmmla.e4m3.f32").group == 8);
  CHECK(of("arm.neoverse.fmmla.e4m3.f16").group == 4);
  CHECK(of("arm.neoverse.fdot.e5m2.f32").group == 4);
  CHECK(of("arm.neoverse.fdot.e5m2.f16").group == 2);
  CHECK(of("nvidia.a100.mma.f64.f64").accumulator.format->name == "float64");
  CHECK(of("nvidia.a100.mma.f64.f64").nan_code == 0x7ff8000000000000);
}

TEST_CASE("models: short names of types", "[fast]") {
  for (const auto& [type, format] : {std::pair{"f32", "float32"},
                                     {"f16", "float16"},
                                     {"bf16", "bfloat16"},
                                     {"tf32", "tfloat32"},
                                     {"xf32", "tfloat32"},
                                     {"f64", "float64"},
                                     {"e4m3", "float8_e4m3fn"},
                                     {"e5m2", "float8_e5m2"},
                                     {"e4m3fnuz", "float8_e4m3fnuz"},
                                     {"e5m2fnuz", "float8_e5m2fnuz"},
                                     {"e2m1", "float4_e2m1fn"},
                                     {"e2m3", "float6_e2m3fn"},
                                     {"e3m2", "float6_e3m2fn"},
                                     {"s8", "int8"},
                                     {"u8", "uint8"},
                                     {"s4", "int4"},
                                     {"u4", "uint4"},
                                     {"s16", "int16"}}) {
    INFO(type);
    CHECK(format_of_type(type)->name == format);
  }
  CHECK(format_of_type("s32") == nullptr);
}

}  // namespace models_test

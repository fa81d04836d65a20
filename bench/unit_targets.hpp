// The units to time, their operands, and the target rate of each.
#pragma once
#include <string>
#include <vector>

#include "bench/gemm_cases.hpp"

namespace numemu::bench {

/// Rates are multiply-adds per second on one thread with 512-bit registers at 2.6 GHz, where the
/// ceiling is two vector multiply-adds a cycle: 83.2e9.
struct UnitTarget {
  std::string unit, format;  ///< a name, or the JSON of a description; of units that take any
  Data data;
  double target;  ///< 0: none
};

inline const std::vector<UnitTarget>& unit_targets() {
  static const std::vector<UnitTarget> targets = {
      {"nvidia.h100.wgmma.e4m3.f32", "", Data::moderate, 18e9},
      {"nvidia.h100.wgmma.e4m3.f32", "", Data::codes, 12e9},
      {"nvidia.h100.wgmma.e4m3.f32", "", Data::sparse, 12e9},
      {"nvidia.h100.wgmma.e5m2.f32", "", Data::codes, 12e9},
      {"nvidia.ada.mma.e4m3.f32", "", Data::moderate, 0},
      {"nvidia.ada.mma.e4m3.f16", "", Data::moderate, 0},
      {"nvidia.a100.mma.f16.f32", "", Data::moderate, 9e9},
      {"nvidia.a100.mma.f16.f32", "", Data::codes, 9e9},
      {"nvidia.a100.mma.bf16.f32", "", Data::moderate, 9e9},
      {"nvidia.a100.mma.tf32.f32", "", Data::moderate, 9e9},
      {"nvidia.a100.mma.f16.f16", "", Data::moderate, 0},
      {"nvidia.h100.mma.f16.f32", "", Data::moderate, 4e9},
      {"nvidia.h100.mma.f16.f32", "", Data::codes, 4e9},
      {"nvidia.h100.mma.f16.f16", "", Data::moderate, 4e9},
      {"nvidia.h100.mma.e4m3.f32", "", Data::moderate, 4e9},
      {"nvidia.b200.tcgen05.e4m3.f32", "", Data::moderate, 4e9},
      {"nvidia.b200.tcgen05.e5m2.f32", "", Data::codes, 4e9},
      {"nvidia.b200.tcgen05.e4m3.f32.mx32", "", Data::moderate, 4e9},
      {"nvidia.b200.tcgen05.e2m1.f32.nv16", "", Data::codes, 10e9},
      {"nvidia.b200.tcgen05.e2m1.f32.mx32", "", Data::codes, 10e9},
      {"amd.mi300.mfma.f16.f32", "", Data::moderate, 3e9},
      {"amd.mi300.mfma.bf16.f32", "", Data::moderate, 3e9},
      {"amd.mi300.mfma.xf32.f32", "", Data::moderate, 3e9},
      {"amd.mi300.mfma.e4m3fnuz.f32", "", Data::moderate, 3e9},
      {"amd.mi200.mfma.f16.f32", "", Data::moderate, 0},
      {"amd.mi100.mfma.f16.f32", "", Data::moderate, 0},
      {"intel.emr.tdpbf16ps.bf16.f32", "", Data::moderate, 0},
      {"arm.neoverse.bfdot.bf16.f32", "", Data::moderate, 0},
      {"neutral.exact", "float8_e4m3fn", Data::codes, 20e9},
      {"neutral.exact", "int8", Data::codes, 20e9},
      {"neutral.exact", "float8_e5m2", Data::codes, 5e9},
      {"neutral.mac.hfp16_e6m9.rne", "float8_e4m3fn", Data::moderate, 14e9},
      {"neutral.mac.hfp16_e6m9.rne", "float8_e5m2", Data::codes, 7e9},
      {"neutral.mac.float16.rne", "float8_e4m3fn", Data::codes, 7e9},
      {"neutral.mac.hfp16_e6m9.sr8", "float8_e4m3fn", Data::moderate, 2.5e9},
      {"neutral.chunk64.hfp16_e6m9.rne", "float8_e4m3fn", Data::moderate, 10e9},
      {"neutral.mac.int16.saturate", "int8", Data::moderate, 0},
      {"neutral.mac.e8m12.rne", "float8_e4m3fn", Data::moderate, 1e9},
      {"neutral.mac.e8m16.rne", "bfloat16", Data::moderate, 1e9},
      {R"({"numemu_unit": 1, "name": "fused16.f16.rne", "core": "fused", "a": "float16",
           "b": "float16", "k": 16, "group": 16, "alignment": {"fraction_bits": 25,
           "rounding": "rne"}, "accumulator": {"format": "float32", "rounding": "rne"}})",
       "", Data::moderate, 1e9},
      {R"({"numemu_unit": 1, "name": "tree8.f16.e8m13", "core": "tree", "a": "float16",
           "b": "float16", "c": "float32", "d": "float32", "k": 8, "group": 8,
           "accumulator": {"format": "e8m13", "rounding": "rne"}})",
       "", Data::moderate, 1e9},
      {R"({"numemu_unit": 1, "name": "tree16.e4m3.leaf4", "core": "tree",
           "a": "float8_e4m3fn", "b": "float8_e4m3fn", "c": "float32", "d": "float32", "k": 16,
           "group": 16, "accumulator": {"format": "float32", "rounding": "rne"},
           "tree": {"leaf": 4}})",
       "", Data::moderate, 1e9},
      {"nvidia.a100.mma.s8.s32", "", Data::codes, 150e9},
      {"nvidia.a100.mma.s4.s32", "", Data::codes, 150e9},
      {"intel.emr.vpdpbusds.u8xs8.s32", "", Data::codes, 0},
      {"neutral.xnor", "sign1", Data::codes, 0},
  };
  return targets;
}

}  // namespace numemu::bench

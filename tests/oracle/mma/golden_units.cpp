// The table of golden files and their units.
#include "tests/oracle/mma/golden_units.hpp"

namespace numemu::oracle::mma {
namespace {

constexpr Reading kZeroC = Reading::zero_c, kAnyNan = Reading::any_nan;

// Outputs of real GPUs. A name ends at the format of D; FP8 on H100 and H200 came from wgmma where
// D is float32 (with an accumulator of zero), else from mma.sync, as on B200.
// clang-format off
constexpr GoldenUnit kHardware[] = {
    {"hw_leeds/A100__bf16__fp32.bin",     "nvidia.a100.mma.bf16.f32"},
    {"hw_leeds/A100__fp16__fp32.bin",     "nvidia.a100.mma.f16.f32"},
    {"hw_leeds/A100__fp16__fp16.bin",     "nvidia.a100.mma.f16.f16"},
    {"hw_leeds/A100__tf32__fp32.bin",     "nvidia.a100.mma.tf32.f32"},
    {"hw_leeds/A2__bf16__fp32.bin",       "nvidia.a2.mma.bf16.f32"},
    {"hw_leeds/A2__fp16__fp32.bin",       "nvidia.a2.mma.f16.f32"},
    {"hw_leeds/A2__fp16__fp16.bin",       "nvidia.a2.mma.f16.f16"},
    {"hw_leeds/A2__tf32__fp32.bin",       "nvidia.a2.mma.tf32.f32"},
    {"hw_leeds/Ada__E4M3__fp32.bin",      "nvidia.ada.mma.e4m3.f32"},
    {"hw_leeds/Ada__E4M3__fp16.bin",      "nvidia.ada.mma.e4m3.f16"},
    {"hw_leeds/Ada__E5M2__fp32.bin",      "nvidia.ada.mma.e5m2.f32"},
    {"hw_leeds/Ada__E5M2__fp16.bin",      "nvidia.ada.mma.e5m2.f16"},
    {"hw_leeds/Ada__bf16__fp32.bin",      "nvidia.ada.mma.bf16.f32"},
    {"hw_leeds/Ada__fp16__fp32.bin",      "nvidia.ada.mma.f16.f32"},
    {"hw_leeds/Ada__fp16__fp16.bin",      "nvidia.ada.mma.f16.f16"},
    {"hw_leeds/Ada__tf32__fp32.bin",      "nvidia.ada.mma.tf32.f32"},
    {"hw_leeds/B200__E4M3__fp32.bin",     "nvidia.b200.mma.e4m3.f32"},
    {"hw_leeds/B200__E4M3__fp16.bin",     "nvidia.b200.mma.e4m3.f16"},
    {"hw_leeds/B200__E5M2__fp32.bin",     "nvidia.b200.mma.e5m2.f32"},
    {"hw_leeds/B200__E5M2__fp16.bin",     "nvidia.b200.mma.e5m2.f16"},
    {"hw_leeds/B200__bf16__fp32.bin",     "nvidia.b200.mma.bf16.f32"},
    {"hw_leeds/B200__fp16__fp32.bin",     "nvidia.b200.mma.f16.f32"},
    {"hw_leeds/B200__fp16__fp16.bin",     "nvidia.b200.mma.f16.f16"},
    {"hw_leeds/B200__tf32__fp32.bin",     "nvidia.b200.mma.tf32.f32"},
    {"hw_leeds/H100__E4M3__fp32.bin",     "nvidia.h100.wgmma.e4m3.f32", kZeroC},
    {"hw_leeds/H100__E4M3__fp16.bin",     "nvidia.h100.mma.e4m3.f16"},
    {"hw_leeds/H100__E5M2__fp32.bin",     "nvidia.h100.wgmma.e5m2.f32", kZeroC},
    {"hw_leeds/H100__E5M2__fp16.bin",     "nvidia.h100.mma.e5m2.f16"},
    {"hw_leeds/H100__bf16__fp32.bin",     "nvidia.h100.mma.bf16.f32"},
    {"hw_leeds/H100__fp16__fp32.bin",     "nvidia.h100.mma.f16.f32"},
    {"hw_leeds/H100__fp16__fp16.bin",     "nvidia.h100.mma.f16.f16"},
    {"hw_leeds/H100__tf32__fp32.bin",     "nvidia.h100.mma.tf32.f32"},
    {"hw_leeds/H200__E4M3__fp32.bin",     "nvidia.h200.wgmma.e4m3.f32", kZeroC},
    {"hw_leeds/H200__E4M3__fp16.bin",     "nvidia.h200.mma.e4m3.f16"},
    {"hw_leeds/H200__E5M2__fp32.bin",     "nvidia.h200.wgmma.e5m2.f32", kZeroC},
    {"hw_leeds/H200__E5M2__fp16.bin",     "nvidia.h200.mma.e5m2.f16"},
    {"hw_leeds/H200__bf16__fp32.bin",     "nvidia.h200.mma.bf16.f32"},
    {"hw_leeds/H200__fp16__fp32.bin",     "nvidia.h200.mma.f16.f32"},
    {"hw_leeds/H200__fp16__fp16.bin",     "nvidia.h200.mma.f16.f16"},
    {"hw_leeds/H200__tf32__fp32.bin",     "nvidia.h200.mma.tf32.f32"},
    {"hw_leeds/L40S__E4M3__fp32.bin",     "nvidia.l40s.mma.e4m3.f32"},
    {"hw_leeds/L40S__E5M2__fp32.bin",     "nvidia.l40s.mma.e5m2.f32"},
    {"hw_leeds/L40S__bf16__fp32.bin",     "nvidia.l40s.mma.bf16.f32"},
    {"hw_leeds/L40S__fp16__fp32.bin",     "nvidia.l40s.mma.f16.f32"},
    {"hw_leeds/L40S__fp16__fp16.bin",     "nvidia.l40s.mma.f16.f16"},
    {"hw_leeds/L40S__tf32__fp32.bin",     "nvidia.l40s.mma.tf32.f32"},
    {"hw_leeds/V100__fp16__fp32.bin",     "nvidia.v100.mma.f16.f32"},
    {"hw_leeds/V100__fp16__fp16.bin",     "nvidia.v100.mma.f16.f16"},
};

// Outputs of the MMA-Sim model. C in float16 and D in float32 is the unit with D in float32.
constexpr GoldenUnit kModel[] = {
    {"mmasim/V100__mma__m8n8k4_f32_f16_f16_f32.bin",                             "nvidia.v100.mma.f16.f32.mmasim"},
    {"mmasim/V100__mma__m8n8k4_f16_f16_f16_f16.bin",                             "nvidia.v100.mma.f16.f16.mmasim"},
    {"mmasim/V100__mma__m8n8k4_f32_f16_f16_f16.bin",                             "nvidia.v100.mma.f16.f32.mmasim"},
    {"mmasim/T4__mma__m16n8k8_f32_f16_f16_f32.bin",                              "nvidia.t4.mma.f16.f32.mmasim"},
    {"mmasim/T4__mma__m16n8k8_f16_f16_f16_f16.bin",                              "nvidia.t4.mma.f16.f16.mmasim"},
    {"mmasim/A100__mma__m16n8k16_f32_f16_f16_f32.bin",                           "nvidia.a100.mma.f16.f32.mmasim"},
    {"mmasim/A100__mma__m16n8k16_f16_f16_f16_f16.bin",                           "nvidia.a100.mma.f16.f16.mmasim"},
    {"mmasim/A100__mma__m16n8k16_f32_bf16_bf16_f32.bin",                         "nvidia.a100.mma.bf16.f32.mmasim"},
    {"mmasim/A100__mma__m16n8k8_f32_bf16_bf16_f32.bin",                          "nvidia.a100.mma.bf16.f32.mmasim"},
    {"mmasim/A100__mma__m16n8k8_f32_tf32_tf32_f32.bin",                          "nvidia.a100.mma.tf32.f32.mmasim"},
    {"mmasim/A100__mma__m16n8k4_f32_tf32_tf32_f32.bin",                          "nvidia.a100.mma.tf32.f32.mmasim"},
    {"mmasim/A100__mma__m16n8k8_f32_f16_f16_f32.bin",                            "nvidia.a100.mma.f16.f32.mmasim"},
    {"mmasim/A100__mma__m8n8k4_f64_f64_f64_f64.bin",                             "nvidia.a100.mma.f64.f64", kAnyNan},
    {"mmasim/Ada__mma__m16n8k32_f32_e4m3_e4m3_f32.bin",                          "nvidia.ada.mma.e4m3.f32"},
    {"mmasim/Ada__mma__m16n8k32_f32_e5m2_e5m2_f32.bin",                          "nvidia.ada.mma.e5m2.f32"},
    {"mmasim/Ada__mma__m16n8k32_f32_e4m3_e5m2_f32.bin",                          "nvidia.ada.mma.e4m3xe5m2.f32"},
    {"mmasim/Ada__mma__m16n8k16_f32_e4m3_e4m3_f32.bin",                          "nvidia.ada.mma.e4m3.f32"},
    {"mmasim/Ada__mma__m16n8k32_f16_e4m3_e4m3_f16.bin",                          "nvidia.ada.mma.e4m3.f16"},
    {"mmasim/Ada__mma__m16n8k32_f16_e5m2_e5m2_f16.bin",                          "nvidia.ada.mma.e5m2.f16"},
    {"mmasim/Ada__mma__m16n8k16_f32_f16_f16_f32.bin",                            "nvidia.ada.mma.f16.f32.mmasim"},
    {"mmasim/H100__mma__m16n8k16_f32_f16_f16_f32.bin",                           "nvidia.h100.mma.f16.f32.mmasim"},
    {"mmasim/H100__mma__m16n8k16_f16_f16_f16_f16.bin",                           "nvidia.h100.mma.f16.f16.mmasim"},
    {"mmasim/H100__mma__m16n8k16_f32_bf16_bf16_f32.bin",                         "nvidia.h100.mma.bf16.f32.mmasim"},
    {"mmasim/H100__mma__m16n8k8_f32_bf16_bf16_f32.bin",                          "nvidia.h100.mma.k8.bf16.f32.mmasim"},
    {"mmasim/H100__mma__m16n8k8_f32_tf32_tf32_f32.bin",                          "nvidia.h100.mma.tf32.f32.mmasim"},
    {"mmasim/H100__mma__m16n8k4_f32_tf32_tf32_f32.bin",                          "nvidia.h100.mma.k4.tf32.f32.mmasim"},
    {"mmasim/H100__mma__m16n8k8_f32_f16_f16_f32.bin",                            "nvidia.h100.mma.k8.f16.f32.mmasim"},
    {"mmasim/H100__mma__m8n8k4_f64_f64_f64_f64.bin",                             "nvidia.h100.mma.f64.f64", kAnyNan},
    {"mmasim/H100__mma__m16n8k16_f64_f64_f64_f64.bin",                           "nvidia.h100.mma.f64.f64", kAnyNan},
    {"mmasim/H100__wgmma__m64n8k16_f32_f16_f16.bin",                             "nvidia.h100.wgmma.f16.f32.mmasim"},
    {"mmasim/H100__wgmma__m64n8k16_f16_f16_f16.bin",                             "nvidia.h100.wgmma.f16.f16.mmasim"},
    {"mmasim/H100__wgmma__m64n8k16_f32_bf16_bf16.bin",                           "nvidia.h100.wgmma.bf16.f32.mmasim"},
    {"mmasim/H100__wgmma__m64n8k8_f32_tf32_tf32.bin",                            "nvidia.h100.wgmma.tf32.f32.mmasim"},
    {"mmasim/H100__wgmma__m64n8k32_f32_e4m3_e4m3.bin",                           "nvidia.h100.wgmma.e4m3.f32"},
    {"mmasim/H100__wgmma__m64n8k32_f32_e5m2_e5m2.bin",                           "nvidia.h100.wgmma.e5m2.f32"},
    {"mmasim/H100__wgmma__m64n8k32_f32_e4m3_e5m2.bin",                           "nvidia.h100.wgmma.e4m3xe5m2.f32"},
    {"mmasim/H100__wgmma__m64n8k32_f16_e4m3_e4m3.bin",                           "nvidia.h100.wgmma.e4m3.f16"},
    {"mmasim/H100__wgmma__m64n8k32_f16_e5m2_e5m2.bin",                           "nvidia.h100.wgmma.e5m2.f16"},
    {"mmasim/B200__tc5__m64n8k16_f32_f16_f16.bin",                               "nvidia.b200.tcgen05.f16.f32.mmasim"},
    {"mmasim/B200__tc5__m64n8k16_f16_f16_f16.bin",                               "nvidia.b200.tcgen05.f16.f16.mmasim"},
    {"mmasim/B200__tc5__m64n8k16_f32_bf16_bf16.bin",                             "nvidia.b200.tcgen05.bf16.f32.mmasim"},
    {"mmasim/B200__tc5__m64n8k8_f32_tf32_tf32.bin",                              "nvidia.b200.tcgen05.tf32.f32.mmasim"},
    {"mmasim/B200__tc5__m64n8k32_f32_e4m3_e4m3.bin",                             "nvidia.b200.tcgen05.e4m3.f32"},
    {"mmasim/B200__tc5__m64n8k32_f32_e5m2_e5m2.bin",                             "nvidia.b200.tcgen05.e5m2.f32"},
    {"mmasim/B200__tc5__m64n8k32_f16_e4m3_e4m3.bin",                             "nvidia.b200.tcgen05.e4m3.f16"},
    {"mmasim/B200__tc5bs__m128n8k32_block32_f32_e4m3_e4m3_ue8m0.bin",            "nvidia.b200.tcgen05.e4m3.f32.mx32"},
    {"mmasim/B200__tc5bs__m128n8k32_block32_f32_e5m2_e5m2_ue8m0.bin",            "nvidia.b200.tcgen05.e5m2.f32.mx32"},
    {"mmasim/B200__tc5bs__m128n8k64_block32_f32_e2m1_e2m1_ue8m0.bin",            "nvidia.b200.tcgen05.e2m1.f32.mx32"},
    {"mmasim/B200__tc5bs__m128n8k64_block16_f32_e2m1_e2m1_ue4m3.bin",            "nvidia.b200.tcgen05.e2m1.f32.nv16"},
    {"mmasim/RTXBlackwell__mma__m16n8k32_f32_e4m3_e4m3_f32.bin",                 "nvidia.rtxblackwell.mma.e4m3.f32"},
    {"mmasim/RTXBlackwell__mma__m16n8k32_f32_e5m2_e5m2_f32.bin",                 "nvidia.rtxblackwell.mma.e5m2.f32"},
    {"mmasim/RTXBlackwell__mmabs__m16n8k32_block32_f32_e4m3_e4m3_f32_ue8m0.bin", "nvidia.rtxblackwell.mma.e4m3.f32.mx32"},
    {"mmasim/RTXBlackwell__mmabs__m16n8k64_block32_f32_e2m1_e2m1_f32_ue8m0.bin", "nvidia.rtxblackwell.mma.e2m1.f32.mx32"},
    {"mmasim/RTXBlackwell__mmabs__m16n8k64_block16_f32_e2m1_e2m1_f32_ue4m3.bin", "nvidia.rtxblackwell.mma.e2m1.f32.nv16"},
    {"mmasim/MI100__mfma__f32_32x32x8f16.bin",                                   "amd.mi100.mfma.f16.f32.pairwise", kAnyNan},
    {"mmasim/MI100__mfma__f32_16x16x8bf16.bin",                                  "amd.mi100.mfma.bf16.f32.pairwise", kAnyNan},
    {"mmasim/MI100__mfma__f32_32x32x2f32.bin",                                   "amd.mi100.mfma.f32.f32", kAnyNan},
    {"mmasim/MI200__mfma__f32_32x32x8f16.bin",                                   "amd.mi200.mfma.f16.f32", kAnyNan},
    {"mmasim/MI200__mfma__f32_32x32x8bf16_1k.bin",                               "amd.mi200.mfma_1k.bf16.f32", kAnyNan},
    {"mmasim/MI200__mfma__f32_16x16x8bf16.bin",                                  "amd.mi200.mfma.bf16.f32", kAnyNan},
    {"mmasim/MI200__mfma__f64_16x16x4f64.bin",                                   "amd.mi200.mfma.f64.f64", kAnyNan},
    {"mmasim/MI300__mfma__f32_32x32x8_f16.bin",                                  "amd.mi300.mfma.f16.f32", kAnyNan},
    {"mmasim/MI300__mfma__f32_32x32x8_bf16.bin",                                 "amd.mi300.mfma.bf16.f32", kAnyNan},
    {"mmasim/MI300__mfma__f32_32x32x4_2b_f16.bin",                               "amd.mi300.mfma.k4.f16.f32", kAnyNan},
    {"mmasim/MI300__mfma__f32_16x16x8_xf32.bin",                                 "amd.mi300.mfma.xf32.f32", kAnyNan},
    {"mmasim/MI300__mfma__f32_16x16x32_fp8_fp8.bin",                             "amd.mi300.mfma.e4m3fnuz.f32", kAnyNan},
    {"mmasim/MI300__mfma__f32_16x16x32_bf8_bf8.bin",                             "amd.mi300.mfma.e5m2fnuz.f32", kAnyNan},
    {"mmasim/MI300__mfma__f32_32x32x16_fp8_bf8.bin",                             "amd.mi300.mfma.e4m3fnuzxe5m2fnuz.f32", kAnyNan},
    {"mmasim/MI300__mfma__f32_16x16x4_f32.bin",                                  "amd.mi300.mfma.f32.f32", kAnyNan},
    {"mmasim/MI300__mfma__f64_16x16x4_f64.bin",                                  "amd.mi300.mfma.f64.f64", kAnyNan},
};
// clang-format on

// Nothing is left out because of these: the lines are run, and the reason is printed beside them.
constexpr Disputed kDisputed[] = {
    {"mmasim/MI100__mfma__f32_32x32x8f16.bin",
     "MMA-Sim sums pairwise, the Leeds model rounds once per group (the default preset)"},
    {"mmasim/MI100__mfma__f32_16x16x8bf16.bin",
     "MMA-Sim sums pairwise, the Leeds model rounds once per group (the default preset)"},
};

}  // namespace

std::span<const GoldenUnit> hardware_units() { return kHardware; }
std::span<const GoldenUnit> model_units() { return kModel; }
std::span<const Disputed> disputed_files() { return kDisputed; }

const GoldenUnit* find_golden_unit(std::span<const GoldenUnit> table, std::string_view file) {
  for (const GoldenUnit& row : table)
    if (row.file == file) return &row;
  return nullptr;
}

}  // namespace numemu::oracle::mma

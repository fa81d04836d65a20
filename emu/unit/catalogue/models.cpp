// The parameters that rows of units.def omit, family by family; open questions: docs/units.md.
#include "emu/unit/catalogue/models.hpp"

#include <bit>
#include <string>

#include "emu/unit/operand.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

constexpr std::uint64_t kNvidiaNan32 = 0x7fffffff, kNvidiaNan16 = 0x7fff;
constexpr std::uint64_t kQuietNan16 = 0x7e00;
constexpr std::uint64_t kX86Nan32 = 0xffc00000, kX86Nan16 = 0xfe00;
constexpr std::uint64_t kQuietNan64 = 0x7ff8000000000000;

constexpr Rounding kTowardZero{.mode = RoundingMode::rtz};
constexpr Rounding kToOdd{.mode = RoundingMode::rodd};

/// float32 for C and D, and as the register.
UnitDescription float32_unit(CoreKind core) {
  UnitDescription u;
  u.core = core;
  u.c = u.d = u.accumulator.format = &float32();
  return u;
}

/// FP8 units keep fewer bits than float32 has, and have no floor of their own.
void take_leeds_floor(UnitDescription& u) {
  constexpr int kFloat32Fraction = 23;
  if (u.alignment.fraction_bits < kFloat32Fraction) return;
  u.alignment.floor = leeds_floor(u);
  u.alignment.zero_c_counts = false;
}

}  // namespace

std::optional<int> leeds_floor(const UnitDescription& u) {
  constexpr int kGuard = 5, kFloat32Fraction = 23;
  const int beyond = u.alignment.fraction_bits - kFloat32Fraction;
  const bool half = u.accumulator.format->name == "float16";
  if (beyond < 0 || (beyond == 0 && !half)) return std::nullopt;
  return smallest_normal_exponent(*u.accumulator.format) - kGuard - beyond;
}

void take_mmasim_floor(UnitDescription& u) {
  u.alignment.floor = Alignment{}.floor;
  u.alignment.zero_c_counts = true;
}

UnitDescription nvidia(int k, int group, int fraction_bits, int kept_bits) {
  UnitDescription u = float32_unit(CoreKind::fused);
  u.k = k;
  u.group = group;
  u.alignment.fraction_bits = fraction_bits;
  if (kept_bits != 23) u.accumulator.format = &find_format("e8m" + std::to_string(kept_bits));
  u.accumulator.rounding = kTowardZero;
  u.accumulator.overflow_to_infinity = true;
  u.nan_code = kNvidiaNan32;
  take_leeds_floor(u);
  return u;
}

UnitDescription lowered_fp8() {
  UnitDescription u = nvidia(32, 16, 25);
  u.order = StepOrder::pairs_mod4;
  u.c_entry = CEntry::after_rounding;
  u.input.format = &find_format("float16");  // exact; subnormal e4m3 are normal there
  return u;
}

UnitDescription nvidia_mx(int block) {
  UnitDescription u = nvidia(32, 32, 25);
  take_mmasim_floor(u);
  u.scaling = {.point = Scaling::Point::exponents, .block = block};
  return u;
}

UnitDescription nvidia_fp4() {
  UnitDescription u = nvidia(64, 64, 35);
  take_mmasim_floor(u);
  u.scaling.point = Scaling::Point::groups;
  return u;
}

UnitDescription fma_chain() { return float32_unit(CoreKind::chain); }

UnitDescription rounded_groups(int group) {
  UnitDescription u = float32_unit(CoreKind::exact);
  u.group = group;
  return u;
}

UnitDescription mi200(int group) {
  UnitDescription u = float32_unit(CoreKind::tree);
  u.group = group;
  u.tree.plus_zero_products = true;
  u.subnormals = {
      .flush_inputs = true, .inputs_to_plus_zero = true, .flush_c = true, .flush_results = true};
  return u;
}

UnitDescription mi300(int group, int parts) {
  UnitDescription u = float32_unit(CoreKind::fused);
  u.group = group;
  u.c_entry = CEntry::after_alignment;
  u.alignment.fraction_bits = 24;
  u.alignment.floor.reset();
  u.alignment.parts = parts;
  if (parts == 2) u.second.c_dropped = 25;
  u.products_overflow = true;
  return u;
}

UnitDescription amx_bf16() {
  UnitDescription u = float32_unit(CoreKind::chain);
  u.k = 32;
  u.chain.chains = 2;
  u.c_entry = CEntry::after_rounding;
  u.subnormals = {.flush_inputs = true, .flush_c = true, .flush_results = true};
  u.nan = NanRule::x86;
  u.nan_code = kX86Nan32;
  return u;
}

UnitDescription amx_fp16() {
  UnitDescription u = amx_bf16();
  u.subnormals.flush_inputs = false;
  return u;
}

UnitDescription avx512_bf16() {
  UnitDescription u = amx_bf16();
  u.k = 2;
  u.chain.chains = 1;
  u.order = StepOrder::odd_first;
  u.c_entry = CEntry::in_alignment;
  return u;
}

UnitDescription avx512_fp16() {
  UnitDescription u = fma_chain();
  u.nan = NanRule::x86;
  return u;
}

UnitDescription integers(int group) {
  UnitDescription u;
  u.core = CoreKind::integer;
  u.k = group;
  u.nan_code = 0;
  return u;
}

UnitDescription saturating_integers(int group) {
  UnitDescription u = integers(group);
  u.accumulator.integer = IntegerOverflow::saturate_once;
  return u;
}

UnitDescription saturating_pairs() {
  UnitDescription u = saturating_integers(2);
  u.accumulator.bits = 16;
  u.outer.every = 2;
  return u;
}

UnitDescription arm_bfdot() {
  UnitDescription u = float32_unit(CoreKind::tree);
  u.group = 2;
  u.accumulator.rounding = kToOdd;
  // Rounding to odd still overflows to infinity here.
  u.accumulator.overflow_to_infinity = true;
  u.subnormals = {
      .flush_inputs = true, .flush_c = true, .flush_results = true, .tiny_before_rounding = true};
  return u;
}

UnitDescription arm_fp8(int group) {
  UnitDescription u = float32_unit(CoreKind::exact);
  u.group = group;
  u.scaling.point = Scaling::Point::after_sum;
  return u;
}

UnitDescription riscv_bulk(int k) {
  constexpr int kFloat32Fraction = 23;
  UnitDescription u = float32_unit(CoreKind::fused);
  u.k = u.group = k;
  u.c_entry = CEntry::after_rounding;
  u.alignment.fraction_bits = kFloat32Fraction + std::bit_width(static_cast<unsigned>(k) - 1);
  u.alignment.rounding = RoundingMode::rodd;
  u.alignment.zero_exponent.reset();
  u.alignment.floor.reset();
  u.accumulator.rounding = u.c_rounding = kToOdd;
  u.accumulator.overflow_to_infinity = true;
  return u;
}

UnitDescription sequential() { return fma_chain(); }

UnitDescription exact() { return float32_unit(CoreKind::exact); }

UnitDescription exact_scaled(std::string_view scale_format, int block) {
  UnitDescription u = exact();
  u.scaling = {
      .point = Scaling::Point::exponents, .format = &find_format(scale_format), .block = block};
  return u;
}

UnitDescription xnor() {
  UnitDescription u;
  u.core = CoreKind::xnor;
  u.a = u.b = &find_format("sign1");
  u.nan_code = 0;
  return u;
}

const Format* format_of_type(std::string_view type) {
  if (type == "s32") return nullptr;
  if (type == "e4m3") return &find_format("float8_e4m3fn");
  if (type == "s16") return &find_format("int16");
  if (type == "xf32") return &find_format("tfloat32");
  return &find_format(type);
}

void set_types(UnitDescription& u, std::string_view a, std::string_view b, std::string_view d) {
  u.a = format_of_type(a);
  u.b = format_of_type(b);
  const std::size_t dot = d.find('.');
  const std::string_view result = d.substr(0, dot);
  if (dot != d.npos) {
    const std::string_view scale = d.substr(dot + 1);
    u.scaling.format = &find_format(scale == "nv16" ? "float8_e4m3fn" : "float8_e8m0fnu");
    u.scaling.block = scale == "mx32" ? 32 : 16;
  }
  if (result == "s32" || result == "f32") return;
  const Format* format = format_of_type(result);
  u.c = u.d = u.accumulator.format = format;
  if (result == "f64") {
    u.nan_code = kQuietNan64;
  } else if (u.nan == NanRule::x86) {
    u.nan_code = kX86Nan16;
  } else if (u.nan_code == kNvidiaNan32) {
    u.nan_code = kNvidiaNan16;
    u.accumulator.rounding = {};
    u.accumulator.overflow_to_infinity = false;
    take_leeds_floor(u);
  } else {
    u.nan_code = kQuietNan16;
  }
}

}  // namespace numemu::unit

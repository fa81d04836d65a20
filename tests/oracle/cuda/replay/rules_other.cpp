// Rivals that are not of the fused step: how FP8 is lowered, sparse order, integers, NaN.
#include "tests/oracle/cuda/replay/rules.hpp"

namespace numemu::oracle::recording::replay {
namespace {

constexpr const char* kLowering = "fp8-lowering";

bool is_fp8(const Instruction& i) {
  const auto fp8 = [](Element e) { return e == Element::e4m3 || e == Element::e5m2; };
  return fp8(i.a) && fp8(i.b) && i.block == 0;
}

void add_native(const Rule& first, int step, int fraction, int kept, std::vector<Rule>& all) {
  Rule r = rival(first, kLowering,
                 "native, G=" + std::to_string(step) + " F=" + std::to_string(fraction));
  r.core = Core::fused;
  r.c = CEnters::in_alignment;
  r.step = step;
  r.fraction = fraction;
  r.kept = kept;
  all.push_back(r);
}

}  // namespace

void add_lowering_rivals(const std::string& chip, const Instruction& i, const Rule& first,
                         std::vector<Rule>& all) {
  if (!is_fp8(i)) return;
  if (first.core == Core::lowered_fp8) {
    const bool hopper = chip == "H100" || chip == "H200";
    if (hopper) add_native(first, 32, 13, 13, all);
    add_native(first, 32, 25, 23, all);
    const auto add = [&](const char* name, Split split, bool swapped) {
      all.push_back(rival(first, kLowering, name));
      all.back().split = split;
      all.back().swapped = swapped;
    };
    add("k mod 4 in {2,3} first", Split::low_of_four, true);
    add("low half of k first", Split::first_half, false);
    add("even k first", Split::even, false);
    if (i.kept() == 16) add("one step over all k", Split::none, false);
    return;
  }
  Rule r = rival(first, kLowering, "lowered");
  r.core = Core::lowered_fp8;
  r.c = CEnters::after_rounding;
  r.step = chip == "Ada" ? 8 : 16;
  r.fraction = chip == "Ada" ? 24 : 25;
  r.kept = 23;
  all.push_back(r);
}

void add_sparse_rivals(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  const bool steps = first.core == Core::lowered_fp8 ||
                     (first.core == Core::fused && first.step != 0 && first.step < i.k);
  if (steps) {
    all.push_back(rival(first, "sparse-order", "steps count positions of k"));
    all.back().counts_positions = true;
  }
  if (first.core == Core::integer) return;
  all.push_back(rival(first, "kept-zeros", "kept zeros are skipped"));
  all.back().skip_kept_zeros = true;
  all.push_back(rival(first, "kept-zeros", "what is not kept counts as zeros"));
  all.back().expands = true;
  // The same steps in k: twice as many positions as kept products.
  all.back().step = 2 * first.step;
}

void add_integer_rivals(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  constexpr const char* kQuestion = "int-saturation";
  if (!i.satfinite) {
    all.push_back(rival(first, kQuestion, "clamps once though not asked"));
    all.back().saturation = Saturation::once;
    return;
  }
  all.push_back(rival(first, kQuestion, "wraps despite .satfinite"));
  all.back().saturation = Saturation::never;
  for (const int g : {1, 4, 8, 16, 32}) {
    if (g >= i.kept()) continue;
    all.push_back(rival(first, kQuestion, "clamps after each " + std::to_string(g)));
    all.back().saturation = Saturation::per_step;
    all.back().step = g;
  }
}

void add_tf32_rivals(const Rule& first, std::vector<Rule>& all) {
  const auto add = [&](const char* name, LowBits low_bits) {
    all.push_back(rival(first, "tf32-low-bits", name));
    all.back().low_bits = low_bits;
  };
  add("low bits rounded to nearest even", LowBits::nearest_even);
  add("low bits rounded to nearest, away", LowBits::nearest_away);
  add("low bits used", LowBits::used);
}

void add_double_rivals(const Rule& first, std::vector<Rule>& all) {
  const auto add = [&](const char* name, Chain chain) {
    all.push_back(rival(first, "double-chain", name));
    all.back().chain = chain;
  };
  add("k descending", Chain::descending);
  add("products rounded first", Chain::rounded_products);
  add("C last", Chain::c_last);
}

void add_scale_rivals(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  const auto add = [&](const char* question, const char* name, bool Rule::*field) {
    all.push_back(rival(first, question, name));
    all.back().*field = true;
  };
  add("scale-nan", "NaN scale of zeros does nothing", &Rule::nan_needs_nonzero);
  add("infinite-c", "infinite C gives NaN", &Rule::infinite_c_is_nan);
  if (i.scale == Element::ue8m0)
    add("scale-range", "scale exponents clamped to -127, 127", &Rule::clamps_scales);
  if (i.scale != Element::ue4m3) return;
  add("scale-significand", "the sign of a scale counts", &Rule::signed_scales);
  add("scale-significand", "subnormal scales are zeros", &Rule::flush_scales);
}

void add_nan_rivals(const Rule& first, std::vector<Rule>& all) {
  const auto add = [&](const char* name, NanPayload nan) {
    if (nan == first.nan) return;
    all.push_back(rival(first, "nan-payload", name));
    all.back().nan = nan;
  };
  add("canonical NaN", NanPayload::canonical);
  add("payload of the first NaN of A, B, C", NanPayload::a_b_c);
  add("payload of the first NaN of C, A, B", NanPayload::c_a_b);
}

}  // namespace numemu::oracle::recording::replay

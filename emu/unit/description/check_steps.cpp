// Refusals that concern the steps of a core: order, roundings, alignment, chains, trees, tables.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <utility>

#include "emu/unit/description/check.hpp"
#include "emu/unit/description/products.hpp"

namespace numemu::unit {
namespace {

constexpr int kMostChains = 64;

}  // namespace

void DescriptionCheck::roundings() {
  const Register& r = u_.accumulator;
  for (const auto& [key, rounding] :
       {std::pair("accumulator.rounding", r.rounding), std::pair("c_rounding", u_.c_rounding),
        std::pair("input.rounding", u_.input.rounding),
        std::pair("outer.rounding", u_.outer.accumulator.rounding)}) {
    if (rounding.stochastic()) {
      in_range(rounding.random_bits, key, 1, 32);
      require(std::string_view(key) == "accumulator.rounding", key,
              "a rounding without random bits");
    } else {
      require(rounding == Rounding{.mode = rounding.mode}, key,
              "random bits and a variant with stochastic rounding only");
    }
  }
  if (!r.rounding.stochastic()) return;
  const std::string_view key = "accumulator.rounding";
  require(u_.core == CoreKind::chain, key, "core chain with stochastic rounding");
  require(u_.chain.chains == 1, "chain.chains",
          "1 with stochastic rounding: the additions of chains draw no random number");
  require(u_.chain.chunk == 0 || u_.k == 0, "k",
          "0 with stochastic rounding and chain.chunk: chunks draw by their index");
  if (r.format == nullptr) {
    require(r.integer != IntegerOverflow::wrap, "accumulator.integer_overflow",
            "saturate_once or saturate_each with stochastic rounding");
    return;
  }
  // A value has 64 bits; encode() needs two bits beyond those it rounds with.
  constexpr int kKnown = 64, kGuard = 2;
  const int most = kKnown - kGuard - 1 - r.format->mantissa_bits;
  require(r.rounding.random_bits <= most, key,
          fmt::format("at most {} random bits with {}", most, r.format->name));
}

void DescriptionCheck::order() {
  if (u_.order == StepOrder::ascending) return;
  const int period = u_.order == StepOrder::pairs_mod4 ? 4 : 2;
  require(u_.k != 0 && u_.k % period == 0, "order",
          fmt::format("a k that is a multiple of {} with {}", period, text_of(u_.order)));
  const bool sums_in_order = u_.core == CoreKind::chain || u_.core == CoreKind::tree ||
                             u_.accumulator.integer == IntegerOverflow::saturate_each;
  require(sums_in_order || step_ < u_.k, "order",
          "ascending where one step takes the whole instruction");
}

void DescriptionCheck::fused() {
  const Alignment& al = u_.alignment;
  in_range(al.fraction_bits, "alignment.fraction_bits", 0, most_fraction_bits(u_));
  const RoundingMode mode = al.rounding;
  require(mode == RoundingMode::rtz || mode == RoundingMode::rne || mode == RoundingMode::rodd ||
              mode == RoundingMode::rdn,
          "alignment.rounding", "rtz, rne, rodd or rdn");
  if (al.zero_exponent)
    in_range(*al.zero_exponent, "alignment.zero_exponent", -kLargestExponent, kLargestExponent);
  if (al.floor) in_range(*al.floor, "alignment.floor", -kLargestExponent, kLargestExponent);
  in_range(al.parts, "alignment.parts", 1, 2);
  if (al.parts == 2)
    require(step_ != 0 && step_ % 2 == 0, "alignment.parts", "an even group with 2 parts");
  if (!meets_later(u_)) return;
  in_range(u_.second.fraction_bits, "second.fraction_bits", 0, most_second_fraction_bits(u_));
  in_range(u_.second.c_fraction_bits, "second.c_fraction_bits", 0, kMostCFractionBits);
  if (u_.second.c_dropped) in_range(*u_.second.c_dropped, "second.c_dropped", 0, kLargestExponent);
}

void DescriptionCheck::chain() {
  const Chaining& chain = u_.chain;
  in_range(chain.chains, "chain.chains", 1, kMostChains);
  in_range(chain.chunk, "chain.chunk", 0, kLargestSize);
  if (chain.chains > 1) {
    require(u_.k % chain.chains == 0, "chain.chains", fmt::format("a divisor of k, {}", u_.k));
    require(u_.c_entry == CEntry::after_rounding, "c_entry",
            "after_rounding with several chains, which start from +0");
  }
  if (chain.chunk != 0) {
    require(chain.chains == 1, "chain.chunk", "together with chain.chains 1");
    require(u_.k % chain.chunk == 0, "chain.chunk", fmt::format("a divisor of k, {}", u_.k));
    require(u_.c_entry == CEntry::in_alignment, "c_entry",
            "in_alignment with chain.chunk: the sums of chunks are chained from C");
  }
  require(!chain.kahan || chain.fused, "chain.kahan", "together with chain.fused true");
  // Its four roundings of a product would need four draws.
  require(!chain.kahan || !u_.accumulator.rounding.stochastic(), "chain.kahan",
          "together with a rounding that is not stochastic");
}

void DescriptionCheck::tree() {
  const bool leaf = in_range(u_.tree.leaf, "tree.leaf", 1, kLargestSize);
  if (leaf && step_ != 0)
    require(step_ % u_.tree.leaf == 0, "tree.leaf",
            fmt::format("a divisor of the step, {}", step_));
}

void DescriptionCheck::table() {
  if (u_.core != CoreKind::table) {
    require(u_.products == nullptr, "products", "together with core table");
    return;
  }
  if (!require(u_.products != nullptr, "products", "a table of products with core table")) return;
  const int bits = u_.a->bits + u_.b->bits;
  if (!require(bits <= kMostTableBits, "b",
               fmt::format("codes of at most {} bits together with core table", kMostTableBits)))
    return;
  require(u_.products->size() == std::size_t{1} << bits, "products",
          fmt::format("2^{} x 2^{} entries, one for each pair of codes", u_.a->bits, u_.b->bits));
}

void DescriptionCheck::c_entry() {
  if (u_.c_entry == CEntry::after_alignment)
    require(u_.core == CoreKind::fused, "c_entry", "core fused with after_alignment");
  if (u_.c_entry == CEntry::after_rounding)
    require(u_.core == CoreKind::fused || u_.core == CoreKind::chain, "c_entry",
            "core fused or chain with after_rounding");
}

}  // namespace numemu::unit

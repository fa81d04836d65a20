#include "emu/oracle/patches.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/unit/description/fields.hpp"

namespace numemu::oracle {
namespace {

using unit::CEntry;
using unit::CoreKind;
using unit::NanRule;
using unit::StepOrder;
using unit::UnitDescription;

}  // namespace

const char* words(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::rne:
      return "to nearest even";
    case RoundingMode::rna:
      return "to nearest, ties away from zero";
    case RoundingMode::rtz:
      return "toward zero";
    case RoundingMode::rup:
      return "toward plus infinity";
    case RoundingMode::rdn:
      return "toward minus infinity";
    case RoundingMode::rodd:
      return "to odd";
    case RoundingMode::sr:
      break;
  }
  return "stochastically";
}

std::vector<Rival> Patches::make() {
  // A sum that is rounded needs these; an integer sum has few parameters.
  if (!unit::is_integer_core(u_)) {
    alignment();
    c_entry();
    result();
    core();
    chain();
    tree();
    subnormals();
    input();
  }
  overflow();
  steps();
  levels();
  nan();
  return std::move(rivals_);
}

void Patches::alignment() {
  const int kept = u_.alignment.fraction_bits;
  for (int f = 0; f <= 64; ++f) {
    add(fmt::format("{} fraction bits kept instead of {}", f, kept),
        [f](UnitDescription& u) { u.alignment.fraction_bits = f; });
  }
  for (const RoundingMode mode : kModes) {
    add(fmt::format("addends cut {} in the alignment", words(mode)),
        [mode](UnitDescription& u) { u.alignment.rounding = mode; });
  }
  const auto drop_zeros = [](UnitDescription& u) {
    u.alignment.zero_exponent.reset();
    u.alignment.zero_c_counts = true;
  };
  add("products with a zero operand take no part in the alignment", drop_zeros);
  add("zero operands count with exponent -126",
      [](UnitDescription& u) { u.alignment.zero_exponent = -126; });
  // Who lets zeros take no part has another lower bound, too.
  constexpr std::array<std::optional<int>, 10> kFloors = {std::nullopt, -126, -132, -133, -149,
                                                          -21,          -20,  -19,  -24,  -14};
  for (const std::optional<int> floor : kFloors) {
    const std::string is = "the largest exponent " +
                           (floor ? fmt::format("is at least {}", *floor) : "has no lower bound");
    add(is, [floor](UnitDescription& u) { u.alignment.floor = floor; });
    add("zero operands take no part and " + is, [=](UnitDescription& u) {
      drop_zeros(u);
      u.alignment.floor = floor;
    });
    add("a zero C takes no part and " + is, [floor](UnitDescription& u) {
      u.alignment.zero_c_counts = !u.alignment.zero_exponent;
      u.alignment.floor = floor;
    });
  }
  for (const int parts : {1, 2}) {
    add(parts == 1 ? "all products summed together" : "products of even and odd k summed apart",
        [parts](UnitDescription& u) { u.alignment.parts = parts; });
  }
  for (const int f : {23, 24, 25, 26, 30, 31, 32}) {
    add(fmt::format("{} fraction bits of the sum kept where it meets C", f),
        [f](UnitDescription& u) { u.second.fraction_bits = f; });
    add(fmt::format("{} fraction bits of C kept where it meets the sum", f),
        [f](UnitDescription& u) { u.second.c_fraction_bits = f; });
    add(fmt::format("C dropped more than {} below the sum", f),
        [f](UnitDescription& u) { u.second.c_dropped = f; });
  }
  add("C never dropped", [](UnitDescription& u) { u.second.c_dropped.reset(); });
  add("products of 2^128 and more are infinite",
      [](UnitDescription& u) { u.products_overflow = true; });
  add("products of 2^128 and more are numbers",
      [](UnitDescription& u) { u.products_overflow = false; });
}

void Patches::c_entry() {
  constexpr std::array kNames = {"C in the alignment, or the start of the chain",
                                 "C meets the unrounded sum in a second alignment",
                                 "C added after rounding"};
  for (const CEntry entry :
       {CEntry::in_alignment, CEntry::after_alignment, CEntry::after_rounding}) {
    add(kNames[static_cast<std::size_t>(entry)], [entry](UnitDescription& u) {
      u.c_entry = entry;
      if (entry != CEntry::after_rounding) u.c_rounding = {};
      if (entry != CEntry::after_alignment) {
        u.second = {};
        u.alignment.parts = 1;
      }
      if (entry == CEntry::in_alignment) u.chain.chains = 1;
      if (entry != CEntry::in_alignment) u.chain.chunk = 0;
    });
  }
  for (const RoundingMode mode : kModes) {
    add(fmt::format("C added with rounding {}", words(mode)),
        [mode](UnitDescription& u) { u.c_rounding = {.mode = mode}; });
  }
}

void Patches::core() {
  for (const CoreKind kind : {CoreKind::fused, CoreKind::chain, CoreKind::tree, CoreKind::exact}) {
    if (kind == u_.core) continue;
    constexpr std::array kNames = {
        "products aligned, cut and added in one step", "one multiply-add after another",
        "products added pairwise, every sum rounded", "the exact sum of a step, rounded once"};
    add(kNames[static_cast<std::size_t>(kind)], [&](UnitDescription& u) {
      u.core = kind;
      u.alignment = {};
      u.second = {};
      u.chain = {};
      u.tree = {};
      u.products_overflow = false;
      const bool entry_fits = kind == CoreKind::fused ||
                              (kind == CoreKind::chain && u.c_entry != CEntry::after_alignment);
      if (!entry_fits) {
        u.c_entry = CEntry::in_alignment;
        u.c_rounding = {};
      }
      if (kind == CoreKind::fused) {
        u.alignment.fraction_bits = 24;
        u.alignment.floor.reset();
      }
      if (kind == CoreKind::chain) u.group = 0;
      if (kind != CoreKind::chain && u.nan == NanRule::x86) u.nan = NanRule::canonical;
      if (u.order != StepOrder::ascending && kind == CoreKind::exact) u.order = {};
    });
  }
}

void Patches::chain() {
  for (const int chains : {1, 2, 4, 8, 16, 32}) {
    add(fmt::format("{} over k mod {}",
                    chains == 1 ? "one chain" : fmt::format("{} chains", chains), chains),
        [chains](UnitDescription& u) {
          u.chain.chains = chains;
          if (chains > 1) {
            u.chain.chunk = 0;
            u.c_entry = CEntry::after_rounding;
          }
        });
  }
  for (const int chunk : {0, 2, 4, 8, 16, 32, 64, 128}) {
    add(chunk == 0 ? "no chunks" : fmt::format("chunks of {} products", chunk),
        [chunk](UnitDescription& u) {
          u.chain.chunk = chunk;
          if (chunk != 0) {
            u.chain.chains = 1;
            u.c_entry = CEntry::in_alignment;
            u.c_rounding = {};
          }
        });
  }
  add("products rounded before they are added", [](UnitDescription& u) { u.chain.fused = false; });
  add("fused multiply-adds", [](UnitDescription& u) { u.chain.fused = true; });
  add("Kahan's correction", [](UnitDescription& u) { u.chain.kahan = true; });
  add("no correction", [](UnitDescription& u) { u.chain.kahan = false; });
}

void Patches::tree() {
  for (const int leaf : {1, 2, 4, 8, 16}) {
    add(leaf == 1 ? "products rounded one by one"
                  : fmt::format("{} products added exactly before the first rounding", leaf),
        [leaf](UnitDescription& u) {
          u.tree.leaf = leaf;
          if (leaf == 1) return;
          u.tree.round_products = true;
          u.tree.plus_zero_products = false;
        });
  }
  for (const bool on : {false, true}) {
    add(on ? "products rounded before they are added" : "products added exactly",
        [on](UnitDescription& u) { u.tree.round_products = on; });
    add(on ? "zero products are +0" : "zero products keep their sign",
        [on](UnitDescription& u) { u.tree.plus_zero_products = on; });
  }
}

void Patches::steps() {
  const int step = unit::products_of_step(u_);
  const auto text = [](int n) { return n == 0 ? std::string("all") : std::to_string(n); };
  for (const int group : {1, 2, 4, 8, 16, 32, 64, 128}) {
    if (u_.core != CoreKind::chain)
      add(fmt::format("{} products a step instead of {}", group, text(step)),
          [group](UnitDescription& u) {
            u.group = group;
            if (u.k != 0 && (u.k < group || u.c_entry != CEntry::after_rounding))
              u.k = std::max(u.k, group);
          });
    if (u_.k == 0) continue;
    add(fmt::format("{} products an instruction instead of {}", group, u_.k),
        [group](UnitDescription& u) {
          u.k = group;
          u.group = std::min(u.group, group);
        });
  }
  constexpr std::array kNames = {"k ascending", "k mod 4 in {0, 1} first, then {2, 3}",
                                 "odd k before even k"};
  for (const StepOrder order : {StepOrder::ascending, StepOrder::pairs_mod4, StepOrder::odd_first})
    add(kNames[static_cast<std::size_t>(order)], [order](UnitDescription& u) { u.order = order; });
}

bool same_rule(const UnitDescription& x, const UnitDescription& y) {
  std::vector<std::string> of_x, of_y;
  for (auto [u, texts] : {std::pair(&x, &of_x), std::pair(&y, &of_y)})
    unit::for_each_field(*u, [texts = texts](std::string_view key, const auto& field) {
      if (key != "name") texts->push_back(unit::text_of(field));
    });
  return of_x == of_y && x.products == y.products;
}

std::vector<Rival> patches_of(const UnitDescription& u) { return Patches(u).make(); }

}  // namespace numemu::oracle

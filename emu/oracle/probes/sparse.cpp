// Probes of sparse operands.
#include <algorithm>
#include <string>

#include "emu/oracle/probes/probes.hpp"

namespace numemu::oracle::probing {

// The k that metadata selects, read from sums of distinct B, and the order of the selected.

namespace {

constexpr const char* kSparseOrder = "sparse-order";

std::string bits(const Kept& kept) {
  std::string text;
  for (int i = 3; i >= 0; --i) text += static_cast<char>('0' + ((kept.word >> i) & 1));
  return text;
}

/// A is 1 where kept in group `group`, and B there such that every two of them have their own sum.
Draft& select(Draft& draft, int group) {
  const Ports& ports = draft.ports();
  constexpr int kValues[] = {1, 2, 4, 6};
  const int unit = ports.sparsity.group == 8 ? 2 : 1;
  const Code one = code_of(ports.a, power(0));
  for (int n = 0; n < ports.sparsity.kept; ++n)
    draft.factors(group * ports.sparsity.kept + n, one, code_of(ports.b, zero()));
  // In a pair only the second counts, so that halves of a pair are told apart too.
  for (int n = 0; n < ports.sparsity.group; n += unit)
    draft.b(group * ports.sparsity.group + n + unit - 1,
            code_of(ports.b, number(kValues[n / unit])));
  return draft;
}

/// Every group with another choice.
Draft& mix(Draft& draft, const std::vector<Kept>& all) {
  for (int g = 0; g < groups(draft.ports()); ++g)
    draft.keep(g, all[static_cast<std::size_t>(g) % all.size()].places);
  return draft;
}

/// Which of the kept share a step: neighbours, a quarter and half of K apart.
void add_orders(Sheet& sheet, const Kept& kept) {
  const Ports& ports = sheet.ports();
  if (!floats(ports)) return;
  const Value large = power(top_exponent(ports));
  const std::optional<Value> small = small_beside(ports);
  for (const int at : {1, ports.kept() / 4, ports.kept() / 2}) {
    if (at == 1 && ports.kept() / 4 == 1) continue;
    const auto draft = [&](const char* id) {
      return probe(
                 sheet,
                 std::string(kSparseOrder) + "." + id + "." + std::to_string(at) + "." + bits(kept),
                 kSparseOrder)
          .keep(kept.places);
    };
    if (!small) {
      sheet.add(draft("halves").product(0, -power(0)).product(at, -power(0)).c(number(3, 23)));
      continue;
    }
    // `small` where it enters after the large product has met C, or its opposite neighbour.
    sheet.add(draft("after").product(0, large).product(at, *small).c(-large));
    sheet.add(draft("before").product(at, large).product(0, *small).c(-large));
    if (at > 1) sheet.add(draft("pair").product(0, large).product(1, -large).product(at, *small));
  }
}

}  // namespace

void ask_sparse_order(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const std::vector<Kept> all = choices(ports);
  if (all.empty()) return;
  const auto draft = [&](const std::string& id) {
    return probe(sheet, std::string(kSparseOrder) + "." + id, kSparseOrder);
  };
  for (const Kept& kept : all) {
    Draft one = draft("select." + bits(kept));
    sheet.add(select(one.keep(kept.places), 0));
    if (&kept == &all.front() || &kept == &all.back()) add_orders(sheet, kept);
  }
  // All groups at once, and one by one.
  const int count = groups(ports);
  Draft together_all = draft("mixed.all");
  mix(together_all, all);
  for (int g = 0; g < count; ++g) select(together_all, g);
  sheet.add(together_all);
  for (int g = 0; g < count; ++g) {
    if (g > 5 && g < count - 1) continue;
    Draft one = draft("mixed." + std::to_string(g));
    sheet.add(select(mix(one, all), g));
  }
}

// Zeros of sparse A: a kept one opposite an infinity or a NaN, and B where A is not kept.

namespace {

constexpr const char* kKeptZeros = "kept-zeros";

/// Of group 0 the last k that is not kept.
int unkept(const Ports& ports, const Kept& kept) {
  int k = ports.sparsity.group - 1;
  while (std::find(kept.places.begin(), kept.places.end(), k) != kept.places.end()) --k;
  return k;
}

}  // namespace

void ask_kept_zeros(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const std::vector<Kept> all = choices(ports);
  if (all.empty()) return;
  struct Opposite {
    const char* name;
    Code code;
  };
  const Code one = code_of(ports.a, power(0));
  for (const Opposite& b : {Opposite{"infinity", infinity_code(ports.b)},
                            Opposite{"nan", nan_code(ports.b, false, true, 0)}}) {
    const auto draft = [&](const std::string& id) {
      return probe(sheet, std::string(kKeptZeros) + "." + id + "." + b.name, kKeptZeros);
    };
    // A group whose only kept numbers are zeros, and one that keeps a number beside its zero.
    sheet.add(draft("zero").factors(0, code_of(ports.a, zero()), b.code));
    sheet.add(draft("minus-zero").factors(0, code_of(ports.a, -zero()), b.code));
    sheet.add(draft("beside-one")
                  .factors(0, code_of(ports.a, zero()), b.code)
                  .factors(1, one, code_of(ports.b, power(0))));
    for (const Kept& kept : all) {
      if (kept.word != 0b0100 && kept.word != 0b1001 && kept.word != 0b1110) continue;
      sheet.add(draft("unkept." + std::to_string(kept.word))
                    .keep(kept.places)
                    .factors(0, one, code_of(ports.b, power(0)))
                    .b(unkept(ports, kept), b.code));
    }
  }
  // Where neither infinity nor NaN can tell: zeros beside large numbers raise the exponent.
  sheet.add(probe(sheet, "kept-zeros.exponent", kKeptZeros)
                .factors(0, code_of(ports.a, zero()), code_of(ports.b, largest(ports.b)))
                .c(tiny_c(ports)));
  sheet.add(probe(sheet, "kept-zeros.exponent.unkept", kKeptZeros)
                .b(unkept(ports, all.front()), code_of(ports.b, largest(ports.b)))
                .c(tiny_c(ports)));
  // Numbers where nothing is kept: never seen.
  sheet.add(probe(sheet, "kept-zeros.unkept.largest", kKeptZeros)
                .factors(0, one, code_of(ports.b, power(0)))
                .b(unkept(ports, all.front()), code_of(ports.b, largest(ports.b))));
}

}  // namespace numemu::oracle::probing

// The k that metadata selects, read from sums of distinct B, and the order of the selected.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "sparse-order";

/// The words of ordered metadata: two of four ascending; of one_of_two the first and the second.
std::vector<std::uint8_t> words(const Instruction& i) {
  if (i.sparsity == Sparsity::one_of_two) return {kFirstTwo, kLastTwo};
  return {kFirstTwo, 0b1000, 0b1100, 0b1001, 0b1101, kLastTwo};
}

std::string bits(std::uint8_t word) {
  std::string text;
  for (int i = 3; i >= 0; --i) text += static_cast<char>('0' + ((word >> i) & 1));
  return text;
}

/// A is 1 where kept in group `group`, and B there such that every two of them have their own sum.
Draft& select(Draft& draft, int group) {
  const Instruction& i = draft.instruction();
  constexpr int kValues[] = {1, 2, 4, 6};
  const int unit = i.sparsity == Sparsity::pairs_of_four ? 2 : 1;
  const Code one = code_of(i.a, power(0));
  for (int n = 0; n < i.group() / 2; ++n)
    draft.codes(group * i.group() / 2 + n, one, code_of(i.b, zero()));
  // In a pair only the second counts, so that halves of a pair are told apart too.
  for (int n = 0; n < i.group(); n += unit)
    draft.b_code(group * i.group() + n + unit - 1, code_of(i.b, integer(kValues[n / unit])));
  return draft;
}

Draft& mix(Draft& draft, const std::vector<std::uint8_t>& all) {
  const int groups = draft.instruction().groups();
  for (int g = 0; g < groups; ++g) draft.metadata(g, all[static_cast<std::size_t>(g) % all.size()]);
  return draft;
}

/// Which of the kept share a step: neighbours, a quarter and half of K apart.
void add_orders(Sheet& sheet, std::uint8_t word) {
  const Instruction& i = sheet.instruction();
  if (is_integer(i.a)) return;
  const Exact large = power(top_exponent(i));
  const std::optional<Exact> small = small_beside(i);
  for (const int at : {1, i.kept() / 4, i.kept() / 2}) {
    if (at == 1 && i.kept() / 4 == 1) continue;
    const auto draft = [&](const char* id) {
      return sheet
          .draft(std::string(kQuestion) + "." + id + "." + std::to_string(at) + "." + bits(word),
                 kQuestion)
          .metadata(word);
    };
    if (!small) {
      sheet.add(draft("halves").product(0, -power(0)).product(at, -power(0)).c(scaled(3, 23)));
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
  const Instruction& i = sheet.instruction();
  if (i.sparsity == Sparsity::dense) return;
  const auto draft = [&](const std::string& id) {
    return sheet.draft(std::string(kQuestion) + "." + id, kQuestion);
  };
  const std::vector<std::uint8_t> all = words(i);
  for (const std::uint8_t word : all) {
    Draft one = draft("select." + bits(word));
    sheet.add(select(one.metadata(word), 0));
    if (word == all.front() || word == all.back()) add_orders(sheet, word);
  }
  // Every group with another word; all groups at once, and one by one.
  const int count = i.groups();
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

}  // namespace numemu::oracle::recording::probing

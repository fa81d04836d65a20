// Zeros of sparse A: a kept one opposite an infinity or a NaN, and B where A is not kept.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "kept-zeros";

/// Of group 0 the last k that the word does not keep.
int unkept(const Instruction& i, std::uint8_t word) {
  std::vector<bool> kept(static_cast<std::size_t>(i.group()), false);
  const std::vector<std::uint8_t> metadata(static_cast<std::size_t>(i.groups()), word);
  for (int n = 0; n < i.group() / 2; ++n)
    kept[static_cast<std::size_t>(k_of(i, metadata, n))] = true;
  int found = -1;
  for (int k = 0; k < i.group(); ++k)
    if (!kept[static_cast<std::size_t>(k)]) found = k;
  return found;
}

}  // namespace

void ask_kept_zeros(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (i.sparsity == Sparsity::dense || is_integer(i.a)) return;
  struct Opposite {
    const char* name;
    Code code;
  };
  const Code one = code_of(i.a, power(0));
  for (const Opposite& b :
       {Opposite{"infinity", infinity_code(i.b)}, Opposite{"nan", nan_code(i.b, false, true, 0)}}) {
    const auto draft = [&](const std::string& id) {
      return sheet.draft(std::string(kQuestion) + "." + id + "." + b.name, kQuestion);
    };
    // A group whose only kept numbers are zeros, and one that keeps a number beside its zero.
    sheet.add(draft("zero").codes(0, code_of(i.a, zero()), b.code));
    sheet.add(draft("minus-zero").codes(0, code_of(i.a, -zero()), b.code));
    sheet.add(draft("beside-one")
                  .codes(0, code_of(i.a, zero()), b.code)
                  .codes(1, one, code_of(i.b, power(0))));
    for (const std::uint8_t word : {kFirstTwo, std::uint8_t{0b1001}, kLastTwo}) {
      if (i.sparsity == Sparsity::one_of_two && word == 0b1001) continue;
      sheet.add(draft("unkept." + std::to_string(word))
                    .metadata(word)
                    .codes(0, one, code_of(i.b, power(0)))
                    .b_code(unkept(i, word), b.code));
    }
  }
  // Where neither infinity nor NaN can tell: zeros beside large numbers raise the exponent.
  sheet.add(sheet.draft("kept-zeros.exponent", kQuestion)
                .codes(0, code_of(i.a, zero()), code_of(i.b, largest(i.b)))
                .c(tiny_c(i)));
  sheet.add(sheet.draft("kept-zeros.exponent.unkept", kQuestion)
                .b_code(unkept(i, kFirstTwo), code_of(i.b, largest(i.b)))
                .c(tiny_c(i)));
  // Numbers where nothing is kept: never seen.
  sheet.add(sheet.draft("kept-zeros.unkept.largest", kQuestion)
                .codes(0, one, code_of(i.b, power(0)))
                .b_code(unkept(i, kFirstTwo), code_of(i.b, largest(i.b))));
}

}  // namespace numemu::oracle::recording::probing

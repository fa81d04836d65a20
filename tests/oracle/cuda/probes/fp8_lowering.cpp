// Groups in which FP8 products are added: neighbours of a pair, k mod 4, the two halves of K, and
// C.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "fp8-lowering";

/// A pair that cancels at k and k + 1 and a small product at `at`: the answer is `small` where that
/// enters after the pair, or apart from it.
void add_meeting(Sheet& sheet, int k, int at) {
  const Instruction& i = sheet.instruction();
  const Exact large = power(top_exponent(i));
  sheet.add(
      sheet
          .draft(std::string(kQuestion) + ".pair" + std::to_string(k) + "." + std::to_string(at),
                 kQuestion)
          .product(k, large)
          .product(k + 1, -large)
          .product(at, *small_beside(i)));
}

}  // namespace

void ask_fp8_lowering(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (info(i.a).bits != 8 || info(i.b).bits != 8 || is_integer(i.a) || i.block != 0) return;
  // Every pair of FP8 types has one, so small_beside() is there.
  for (const int at : {2, 3, 4, 6, 10, 18}) add_meeting(sheet, 0, at);
  for (const int at : {0, 1, 4, 6, 8, 16, 18}) add_meeting(sheet, 2, at);
  for (const int at : {0, 2, 18, 20}) add_meeting(sheet, 16, at);
  const Exact large = power(top_exponent(i));
  for (const int at : {1, 2, 4, 16})
    sheet.add(sheet.draft(std::string(kQuestion) + ".c." + std::to_string(at), kQuestion)
                  .product(0, large)
                  .product(at, *small_beside(i))
                  .c(-large));
  // Beyond float16 after the first of two steps, within it after both.
  sheet.add(sheet.draft("fp8-lowering.overflow", kQuestion)
                .product(0, power(15))
                .product(1, power(15))
                .product(2, -power(15)));
  // A sum of products that float16 cannot hold, before C is added.
  sheet.add(sheet.draft("fp8-lowering.rounded-half", kQuestion)
                .product(0, power(11))
                .product(2, power(0))
                .c(-power(11)));
}

}  // namespace numemu::oracle::recording::probing

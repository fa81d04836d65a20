// Accumulators at the ends of int32: sums that leave and return, pair by pair and all at once.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "int-saturation";
constexpr std::int64_t kGreatest = 0x7fffffff;
constexpr std::int64_t kLeast = -0x80000000LL;

Draft draft(Sheet& sheet, const std::string& id) {
  return sheet.draft(std::string(kQuestion) + "." + id, kQuestion);
}

/// The product of the largest factors.
std::int64_t largest_product(const Instruction& i) {
  return static_cast<std::int64_t>(largest(i.a).significand * largest(i.b).significand);
}

/// C at an end; at `first` a product beyond it, at `second` the way back.
void add_return(Sheet& sheet, int first, int second) {
  const std::string n = std::to_string(first) + "." + std::to_string(second);
  sheet.add(draft(sheet, "above." + n)
                .c(integer(kGreatest))
                .product(first, integer(1))
                .product(second, integer(-1)));
  sheet.add(draft(sheet, "below." + n)
                .c(integer(kLeast))
                .product(first, integer(-1))
                .product(second, integer(1)));
}

void ask_many(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  const int kept = i.kept();
  const std::int64_t each = largest_product(i);
  // C such that all products together just reach the end, or pass it by one.
  for (const int beyond : {0, 1}) {
    Draft up = draft(sheet, "sum-above." + std::to_string(beyond));
    Draft down = draft(sheet, "sum-below." + std::to_string(beyond));
    up.c(integer(kGreatest - kept * each + beyond));
    down.c(integer(kLeast + kept * each - beyond));
    for (int k = 0; k < kept; ++k) {
      up.product(k, integer(each));
      down.product(k, integer(-each));
    }
    sheet.add(up);
    sheet.add(down);
  }
  // Across zero, far from both ends.
  Draft across = draft(sheet, "across-zero");
  across.c(integer(-each));
  for (int k = 0; k < kept; ++k) across.product(k, integer(each));
  sheet.add(across);
  // As many up as down, by halves and by turns.
  for (const bool by_turns : {false, true}) {
    for (const bool up_first : {true, false}) {
      Draft mixed = draft(sheet, std::string(by_turns ? "turns." : "halves.") +
                                     (up_first ? "up-first" : "down-first"));
      mixed.c(integer(up_first ? kGreatest : kLeast));
      for (int k = 0; k < kept; ++k) {
        const bool first = by_turns ? k % 2 == 0 : k < kept / 2;
        mixed.product(k, integer(first == up_first ? each : -each));
      }
      sheet.add(mixed);
    }
  }
}

}  // namespace

void ask_int_saturation(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!is_integer(i.a)) return;
  sheet.add(draft(sheet, "greatest").c(integer(kGreatest)));
  sheet.add(draft(sheet, "least").c(integer(kLeast)));
  sheet.add(draft(sheet, "greatest-and-one").c(integer(kGreatest)).product(0, integer(1)));
  sheet.add(draft(sheet, "least-and-one").c(integer(kLeast)).product(0, integer(-1)));
  // The largest product at a position, C such that it passes the end by one.
  const std::int64_t each = largest_product(i);
  for (int k = 1; k <= i.kept(); k *= 2)
    sheet.add(draft(sheet, "past." + std::to_string(k - 1))
                  .c(integer(kGreatest - each + 1))
                  .product(k - 1, integer(each)));
  for (int k = 1; k < i.kept(); k *= 2) {
    add_return(sheet, 0, k);
    add_return(sheet, k, 0);
  }
  add_return(sheet, i.kept() - 2, i.kept() - 1);
  ask_many(sheet);
}

}  // namespace numemu::oracle::recording::probing

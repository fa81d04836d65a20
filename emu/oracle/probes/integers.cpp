// Probes of integer registers.
// Cold: a negligible share of any run (docs/build.md).
#include <algorithm>
#include <string>

#include "emu/oracle/probes/families.hpp"

namespace numemu::oracle::probing {

// Accumulators at the ends of the register: sums that leave and return, pair by pair and all at
// once.

namespace {

constexpr const char* kIntSaturation = "int-saturation";

/// The ends of the register.
std::int64_t greatest(const Ports& ports) { return (std::int64_t{1} << (ports.bits - 1)) - 1; }
std::int64_t least(const Ports& ports) { return -greatest(ports) - 1; }

Draft draft(Sheet& sheet, const std::string& id) {
  return probe(sheet, std::string(kIntSaturation) + "." + id, kIntSaturation);
}

/// The product of the largest factors.
std::int64_t largest_product(const Ports& ports) {
  return static_cast<std::int64_t>(largest(ports.a).significand * largest(ports.b).significand);
}

/// C at an end; at `first` a product beyond it, at `second` the way back.
void add_return(Sheet& sheet, int first, int second) {
  const std::string n = std::to_string(first) + "." + std::to_string(second);
  sheet.add(draft(sheet, "above." + n)
                .c(number(greatest(sheet.ports())))
                .product(first, number(1))
                .product(second, number(-1)));
  sheet.add(draft(sheet, "below." + n)
                .c(number(least(sheet.ports())))
                .product(first, number(-1))
                .product(second, number(1)));
}

void ask_many(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const int kept = ports.kept();
  const std::int64_t each = largest_product(ports);
  // C such that all products together just reach the end, or pass it by one.
  for (const int beyond : {0, 1}) {
    Draft up = draft(sheet, "sum-above." + std::to_string(beyond));
    Draft down = draft(sheet, "sum-below." + std::to_string(beyond));
    up.c(number(greatest(sheet.ports()) - kept * each + beyond));
    down.c(number(least(sheet.ports()) + kept * each - beyond));
    for (int k = 0; k < kept; ++k) {
      up.product(k, number(each));
      down.product(k, number(-each));
    }
    sheet.add(up);
    sheet.add(down);
  }
  // Across zero, far from both ends.
  Draft across = draft(sheet, "across-zero");
  across.c(number(-each));
  for (int k = 0; k < kept; ++k) across.product(k, number(each));
  sheet.add(across);
  // As many up as down, by halves and by turns.
  for (const bool by_turns : {false, true}) {
    for (const bool up_first : {true, false}) {
      Draft mixed = draft(sheet, std::string(by_turns ? "turns." : "halves.") +
                                     (up_first ? "up-first" : "down-first"));
      mixed.c(number(up_first ? greatest(sheet.ports()) : least(sheet.ports())));
      for (int k = 0; k < kept; ++k) {
        const bool first = by_turns ? k % 2 == 0 : k < kept / 2;
        mixed.product(k, number(first == up_first ? each : -each));
      }
      sheet.add(mixed);
    }
  }
}

}  // namespace

void ask_int_saturation(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  sheet.add(draft(sheet, "greatest").c(number(greatest(sheet.ports()))));
  sheet.add(draft(sheet, "least").c(number(least(sheet.ports()))));
  sheet.add(
      draft(sheet, "greatest-and-one").c(number(greatest(sheet.ports()))).product(0, number(1)));
  sheet.add(draft(sheet, "least-and-one").c(number(least(sheet.ports()))).product(0, number(-1)));
  // The largest product at a position, C such that it passes the end by one.
  const std::int64_t each = largest_product(ports);
  for (int k = 1; k <= ports.kept(); k *= 2)
    sheet.add(draft(sheet, "past." + std::to_string(k - 1))
                  .c(number(greatest(sheet.ports()) - each + 1))
                  .product(k - 1, number(each)));
  for (int k = 1; k < ports.kept(); k *= 2) {
    add_return(sheet, 0, k);
    add_return(sheet, k, 0);
  }
  add_return(sheet, ports.kept() - 2, ports.kept() - 1);
  ask_many(sheet);
}

}  // namespace numemu::oracle::probing

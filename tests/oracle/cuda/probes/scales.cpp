// Block scales: NaN, the extremes, the significand and sign bit of ue4m3, and an infinite C.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

Code nan_scale(Element scale) { return scale == Element::ue8m0 ? 0xff : 0x7f; }

void ask_nan(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  const Code one = scale_code(i.scale, 0), bad = nan_scale(i.scale);
  const int last = i.scales() - 1;
  const auto draft = [&](const std::string& id) {
    return sheet.draft("scale-nan." + id, "scale-nan");
  };
  sheet.add(draft("a").scales(0, bad, one).factors(0, power(0), power(0)));
  sheet.add(draft("b").scales(0, one, bad).factors(0, power(0), power(0)));
  sheet.add(draft("a-of-zeros").scales(0, bad, one));
  sheet.add(draft("b-of-zeros").scales(last, one, bad));
  sheet.add(draft("both").scales(0, bad, bad).factors(0, power(0), power(0)));
  sheet.add(
      draft("beside").scales(last, bad, one).factors(0, power(0), power(0)).only_if(last > 0));
  sheet.add(draft("and-c").scales(0, bad, one).c_code(infinity_code(i.c)));
}

void ask_range(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (i.scale != Element::ue8m0) return;
  struct Pair {
    const char* name;
    std::uint64_t a, b;
  };
  const auto draft = [&](const std::string& id, const Pair& pair) {
    return sheet.draft("scale-range." + id + "." + pair.name, "scale-range")
        .scales(0, pair.a, pair.b);
  };
  for (const Pair& pair : {Pair{"least", 0, 0}, Pair{"least-a", 0, 127}, Pair{"opposed", 0, 254},
                           Pair{"greatest", 254, 254}}) {
    sheet.add(draft("one", pair).factors(0, power(0), power(0)));
    sheet.add(draft("minus-largest", pair).factors(0, -largest(i.a), largest(i.b)));
    // Equal and opposite, however far beyond the range: C is the answer, or lost beside them.
    sheet.add(draft("cancel", pair)
                  .factors(0, power(0), power(0))
                  .factors(1, -power(0), power(0))
                  .c(power(0)));
  }
  sheet.add(draft("zeros", {"greatest", 254, 254}).c(power(0)));
}

void ask_significand(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (i.scale != Element::ue4m3) return;
  struct Pair {
    const char* name;
    std::uint64_t a, b;
  };
  for (const Pair& pair :
       {Pair{"odd", 0x39, 0x39}, Pair{"full", 0x3f, 0x3f}, Pair{"largest", 0x7e, 0x7e},
        Pair{"zero-a", 0x00, 0x38}, Pair{"zero-b", 0x38, 0x00}, Pair{"least-subnormal", 0x01, 0x38},
        Pair{"largest-subnormal", 0x07, 0x07}, Pair{"least-subnormals", 0x01, 0x01},
        Pair{"least-normal", 0x08, 0x08}, Pair{"sign", 0xb8, 0x38}, Pair{"both-signs", 0xb8, 0xb8},
        Pair{"minus-zero", 0x80, 0x38}, Pair{"sign-largest", 0x38, 0xfe},
        Pair{"sign-nan", 0xff, 0x38}}) {
    const auto draft = [&](const char* id) {
      return sheet.draft(std::string("scale-significand.") + id + "." + pair.name,
                         "scale-significand");
    };
    sheet.add(draft("one").scales(0, pair.a, pair.b).factors(0, power(0), power(0)));
    // A whole group of the largest elements: its sum times both significands needs every bit.
    Draft group = draft("group");
    group.scales(0, pair.a, pair.b).c(-power(0));
    for (int k = 0; k < i.block; ++k) group.factors(k, largest(i.a), scaled(3, -1));
    sheet.add(group);
  }
}

void ask_infinite_c(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  const auto draft = [&](const char* id) {
    return sheet.draft(std::string("infinite-c.") + id, "infinite-c")
        .factors(0, -power(0), power(0));
  };
  sheet.add(draft("plus").c_code(infinity_code(i.c)));
  sheet.add(draft("minus").c_code(infinity_code(i.c, true)));
  sheet.add(draft("nan").c_code(nan_code(i.c, true, true, 1)));
  sheet.add(draft("signalling").c_code(nan_code(i.c, false, false, 1)));
  sheet.add(draft("largest").c(largest(i.c)));
}

}  // namespace

void ask_scales(Sheet& sheet) {
  if (sheet.instruction().block == 0) return;
  ask_nan(sheet);
  ask_range(sheet);
  ask_significand(sheet);
  ask_infinite_c(sheet);
}

}  // namespace numemu::oracle::recording::probing

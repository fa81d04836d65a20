// NaN in A, B and C, quiet and signalling, of both signs: which bits of them reach the result.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

struct Kind {
  const char* name;
  bool negative, quiet;
  std::uint64_t payload;
};
constexpr Kind kKinds[] = {{"quiet", false, true, 0},
                           {"payload", false, true, 1},
                           {"minus", true, true, 0},
                           {"signalling", false, false, 1},
                           {"minus-signalling", true, false, 1}};

}  // namespace

void ask_nan_payload(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (is_integer(i.a)) return;
  const auto draft = [&](const std::string& id) {
    return sheet.draft("nan-payload." + id, "nan-payload");
  };
  const auto code = [](Element e, const Kind& kind) {
    return nan_code(e, kind.negative, kind.quiet, kind.payload);
  };
  const Code one_a = code_of(i.a, power(0)), one_b = code_of(i.b, power(0));
  for (const Kind& kind : kKinds) {
    sheet.add(draft(std::string("a-") + kind.name).codes(0, code(i.a, kind), one_b));
    if (kind.payload != 0)
      sheet.add(draft(std::string("b-") + kind.name).codes(0, one_a, code(i.b, kind)));
    sheet.add(draft(std::string("c-") + kind.name).c_code(code(i.c, kind)));
  }
  const Code a = code(i.a, kKinds[0]), b = code(i.b, kKinds[0]), c = code(i.c, kKinds[2]);
  sheet.add(draft("a-times-zero").codes(0, a, code_of(i.b, zero())));
  sheet.add(draft("a-and-b").codes(0, a, b));
  sheet.add(draft("a-and-c").codes(0, a, one_b).c_code(c));
  sheet.add(draft("last").codes(i.kept() - 1, a, one_b));
}

}  // namespace numemu::oracle::recording::probing

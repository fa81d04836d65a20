#include "emu/oracle/evaluate.hpp"

#include <vector>

#include "emu/oracle/exact_sum.hpp"
#include "emu/oracle/unit_dot.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {
namespace {

using Column = std::vector<std::uint64_t>;

void evaluate_unit(const Subject& s, const Layout& layout, Records& records) {
  UnitDot dot(s, layout);
  const int flags = find_field(layout, "flags");
  Column& d = records.columns[static_cast<std::size_t>(find_field(layout, "d"))];
  for (std::int64_t i = 0; i < records.size; ++i) {
    const auto [code, raised] = dot.outcome(records, i);
    d[static_cast<std::size_t>(i)] = code;
    if (flags >= 0)
      records.columns[static_cast<std::size_t>(flags)][static_cast<std::size_t>(i)] = raised;
  }
}

}  // namespace

void evaluate(const Subject& s, Records& records) {
  const Layout layout = layout_of(s);
  if (s.operation == Operation::unit) return evaluate_unit(s, layout, records);
  ExactSum sum(s, layout);
  const int random = find_field(layout, "random");
  Column& out = records.columns[static_cast<std::size_t>(find_field(layout, "out"))];
  Column& flags = records.columns[static_cast<std::size_t>(find_field(layout, "flags"))];
  for (std::int64_t i = 0; i < records.size; ++i) {
    const ExactSum::Result exact = sum.of(records, i);
    const std::uint64_t word = random < 0 ? 0 : records.code(random, i);
    const Encoded encoded =
        encode(*s.to, exact.value, s.rounding, s.overflow, static_cast<std::uint32_t>(word));
    out[static_cast<std::size_t>(i)] = encoded.code;
    flags[static_cast<std::size_t>(i)] = flags_of(exact, *s.to, encoded);
  }
}

Value exact_result(const Subject& s, const Records& records, std::int64_t i) {
  return ExactSum(s, layout_of(s)).of(records, i).value;
}

}  // namespace numemu::oracle

#include "emu/oracle/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "emu/oracle/exact_sum.hpp"
#include "emu/oracle/unit_dot.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {
namespace {

/// Computes the result of each record, with the record's number in every error.
void for_each_record(const Layout& layout, Records& records,
                     const std::function<Encoded(std::int64_t i)>& result) {
  const int flags = find_field(layout, "flags");
  const int out = std::max(find_field(layout, "d"), find_field(layout, "out"));
  for (std::int64_t i = 0; i < records.size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      const Encoded encoded = result(i);
      records.columns[static_cast<std::size_t>(out)][at] = encoded.code;
      if (flags >= 0) records.columns[static_cast<std::size_t>(flags)][at] = encoded.flags;
    } catch (const Error& error) {
      throw RecordError(i, error.what());
    }
  }
}

}  // namespace

RecordError::RecordError(std::int64_t number, const std::string& what)
    : Error(fmt::format("record {}: {}", number, what)), record(number), text(what) {}

void evaluate(const Subject& s, Records& records, const unit::ShortEnds* ends) {
  const Layout layout = layout_of(s);
  if (s.operation == Operation::unit) {
    UnitDot dot(s, layout);
    return for_each_record(layout, records, [&](std::int64_t i) {
      const unit::Outcome outcome = dot.outcome(records, i, ends);
      return Encoded{outcome.code, outcome.flags};
    });
  }
  ExactSum sum(s, layout);
  const int random = find_field(layout, "random");
  for_each_record(layout, records, [&](std::int64_t i) {
    const ExactSum::Result exact = sum.of(records, i);
    const std::uint64_t word = random < 0 ? 0 : records.code(random, i);
    Encoded encoded =
        encode(*s.to, exact.value, s.rounding, s.overflow, static_cast<std::uint32_t>(word));
    encoded.flags = flags_of(exact, *s.to, encoded);
    return encoded;
  });
}

Value exact_result(const Subject& s, const Records& records, std::int64_t i) {
  return ExactSum(s, layout_of(s)).of(records, i).value;
}

}  // namespace numemu::oracle

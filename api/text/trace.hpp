// A trace of one output as text and as JSON: every product, what was lost, every partial sum.
#pragma once
#include <optional>
#include <string>

#include "api/units.hpp"
#include "formats/storage/json.hpp"

namespace numemu::api {

/// Numbers are exact hexadecimal floats with about the same decimal beside them, of integer units
/// decimal integers; codes are hexadecimal. `place` is the output's position in D: "0,3".
std::string trace_text(const TracedOutput&, const std::string& place);
Json trace_json(const TracedOutput&);

/// An output's place as members b, m and n of an object.
void add_place(const Place&, const Product&, Json& json);

/// Steps [begin, end); of the first one terms from begin_term on, of the last one, a chain, those
/// before end_term.
struct TraceWindow {
  std::size_t begin = 0, end = 0, begin_term = 0;
  std::optional<std::size_t> end_term = {};
};
std::string steps_text(const TracedOutput&, const TraceWindow&);
Json steps_json(const TracedOutput&, const TraceWindow&);

/// "0x1.8p+3 (12)"; "12" where the numbers of the unit are integers.
std::string value_text(const Value&, bool whole);
/// Whether all sums of such a product are whole numbers.
bool whole_numbers(const unit::Unit&, const unit::Gemm&);

}  // namespace numemu::api

// A trace of one output as text and as JSON: every product, what was lost, every partial sum.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "emu/unit/reference/losses.hpp"
#include "emu/unit/unit.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// How a unit computed output (i, j) of a product. Numbers are exact hexadecimal floats with about
/// the same decimal beside them, of integer units decimal integers; codes are hexadecimal.
class UnitTrace {
 public:
  /// The unit has a description. Unit and product must outlive the trace.
  UnitTrace(const unit::Unit&, const unit::Gemm&, std::int64_t i, std::int64_t j, unit::Trace);

  /// All of it. `place` is the output's position in D: "0,3".
  std::string text(const std::string& place) const;
  /// Steps [begin, end); of the first one terms from begin_term on, of the last one, a chain, those
  /// before end_term.
  struct Window {
    std::size_t begin = 0, end = 0, begin_term = 0;
    std::optional<std::size_t> end_term = {};
  };
  std::string text(const Window&) const;
  /// The same for programs.
  Json json() const;
  Json json(const Window&) const;

 private:
  const unit::Unit& unit_;
  const unit::Gemm& gemm_;
  unit::Trace trace_;
  std::vector<unit::StepLosses> losses_;
};

/// "0x1.8p+3 (12)".
std::string value_text(const Value&);
/// The same; "12" where the numbers of the unit are integers.
std::string value_text(const Value&, bool whole);
/// Whether all sums of such a product are whole numbers.
bool whole_numbers(const unit::Unit&, const unit::Gemm&);

}  // namespace numemu::cli

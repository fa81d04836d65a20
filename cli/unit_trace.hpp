// A trace of one output as text and as JSON: every product, what alignment cut, every partial sum.
#pragma once
#include <string>

#include "emu/unit/reference/trace.hpp"
#include "emu/unit/unit.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// Lines for people; numbers are exact hexadecimal floats, codes hexadecimal. `place` is the
/// output's position in D: "0,3".
std::string trace_text(const unit::Unit&, const unit::Gemm&, const std::string& place,
                       const unit::Trace&);
/// The same for programs.
Json trace_json(const unit::Unit&, const unit::Gemm&, const unit::Trace&);

}  // namespace numemu::cli

// A trace of one output as text and as JSON: every product, what alignment cut, every partial sum.
#pragma once
#include <string>

#include "emu/unit/reference/trace.hpp"
#include "emu/unit/unit.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// Lines for people; numbers are exact hexadecimal floats, codes hexadecimal.
std::string trace_text(const unit::Unit&, const unit::Gemm&, std::int64_t i, std::int64_t j,
                       const unit::Trace&);
/// The same for programs.
Json trace_json(const unit::Unit&, const unit::Gemm&, std::int64_t i, std::int64_t j,
                const unit::Trace&);

}  // namespace numemu::cli

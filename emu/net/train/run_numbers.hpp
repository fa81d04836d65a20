// The numbers of a run as JSON; float64 values as their 64 bits, so that none is rounded.
#pragma once
#include <span>
#include <string>

#include "emu/net/train/run_state.hpp"
#include "formats/storage/json.hpp"

namespace numemu::net {

/// Everything of the state but the best values; `scalars` are the optimizer's.
Json numbers_json(const RunState&, std::span<const double> scalars);

/// The state that numbers_json() gave. Throws Error("WHERE: KEY: expected ...") where the JSON is
/// not of that form.
RunState read_numbers(const Json&, const std::string& where, std::span<double> scalars);

}  // namespace numemu::net

// The options of the epilogue behind an integer unit, which gemm, vectors and verify share.
#pragma once
#include "api/units.hpp"
#include "cli/options.hpp"

namespace numemu::cli {

/// Adds --requantize and its numbers; the bias of columns and the format of codes are the
/// command's.
void add_epilogue(Command&, api::EpilogueFiles&);
/// Throws Error where --requantize is missing that an option belongs to.
void require_requantize(const api::EpilogueFiles&);

}  // namespace numemu::cli

// The pages of the manual, from the options that commands declare.
#pragma once
#include <string>

#include "cli/options.hpp"

namespace numemu::cli {

struct Release {
  std::string version, date;  ///< "numemu 1.2.3", "2026-01-31"
};

/// Page numemu-COMMAND(1) in the macros of man(7), or numemu(1) for "". Throws Error for a command
/// that this program does not have.
std::string manual_page(const Program&, const std::string& command, const Release&);

}  // namespace numemu::cli

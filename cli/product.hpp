// What gemm and dot share: their options, and what is done and printed once they are read; the
// options of the epilogue behind an integer unit, which vectors and verify have, too.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "api/units.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// Adds --requantize and its numbers; the bias of columns and the format of codes are the
/// command's.
void add_epilogue(Command&, api::EpilogueFiles&);
/// Throws Error where --requantize is missing that an option belongs to.
void require_requantize(const api::EpilogueFiles&);

struct ProductOptions {
  std::string unit, out, trace, flags, compare, b_layout = "kn";
  std::optional<std::int64_t> worst;
  api::ProductFiles files;
  std::optional<float> alpha;
  api::EpilogueFiles epilogue;
  bool reference = false, json = false, quiet = false;
};

/// Adds the options whose words are the same in both commands.
void add_product_options(Command&, ProductOptions&);
/// Runs the command and returns its exit code.
int run_product(const ProductOptions&);

}  // namespace numemu::cli

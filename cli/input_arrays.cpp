// Scale rules are policies, on a higher floor than storage.
#include "cli/input_arrays.hpp"

#include <fmt/format.h>

#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu::cli {
namespace {

void check_scale_rule(const std::string& path, const Sidecar& sidecar) {
  if (!sidecar.scale_rule) return;
  // Where no block format determines the kind of scales of the rule, that of mxfp4 is one kind,
  // and a real scale the other.
  try {
    try {
      find_scale_rule(*sidecar.scale_rule, find_block_format(sidecar.block.value_or("mxfp4")));
    } catch (const Error&) {
      if (sidecar.block) throw;
      find_scale_rule(*sidecar.scale_rule);
    }
  } catch (const Error& error) {
    throw Error(fmt::format("{}: scale_rule: {}", sidecar_path(path), error.what()));
  }
}

}  // namespace

std::vector<StoredArray> open_inputs(const std::vector<ArrayName>& names) {
  std::vector<StoredArray> arrays = open_together(names);
  for (const StoredArray& array : arrays) {
    if (array.sidecar) check_scale_rule(array.path(), *array.sidecar);
  }
  return arrays;
}

StoredArray open_input(const std::string& path) { return std::move(open_inputs({{path}}).front()); }

}  // namespace numemu::cli

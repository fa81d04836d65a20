#include "cli/metric_option.hpp"

#include <fmt/format.h>

#include "emu/net/train/score.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {

std::string metric_help() {
  return fmt::format(
      "Metrics beside top-1 and loss; the first one judges: {} (default: those of the data set)",
      joined(net::score_names(), ", "));
}

}  // namespace numemu::cli

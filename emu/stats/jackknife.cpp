#include "emu/stats/jackknife.hpp"

#include <cmath>
#include <vector>

#include "emu/stats/mean.hpp"

namespace numemu::stats {

double jackknife_error(std::int64_t groups,
                       const std::function<double(std::int64_t left_out)>& statistic) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < groups; ++i) values.push_back(statistic(i));
  return mean_of(values).deviation * static_cast<double>(groups - 1) /
         std::sqrt(static_cast<double>(groups));
}

}  // namespace numemu::stats

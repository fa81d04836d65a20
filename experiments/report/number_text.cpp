#include "experiments/report/number_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "policies/canonical_json.hpp"

namespace numemu::experiments {
namespace {

constexpr int kDigitsOfRows = 6, kExact = 12;  // 12 digits: no product of six is off by more

}  // namespace

int shown_decimals(double x, int most) {
  constexpr double kBeyond = 1e5;  // the first of six digits
  double shown = std::abs(x);
  for (int i = 0; i < most; ++i) shown *= 10;
  int decimals = most;
  for (; decimals > 0 && std::isfinite(shown) && shown >= kBeyond; shown /= 10) --decimals;
  return decimals;
}

std::string decimal_text(double x, int most, bool sign) {
  const int decimals = shown_decimals(x, most);
  return sign ? fmt::format("{:+.{}f}", x, decimals) : fmt::format("{:.{}f}", x, decimals);
}

double shown_percent(double share) {
  if (!std::isfinite(share)) return share;
  const double hundredths = 1e4 * policies::significant(share, kDigitsOfRows);
  return std::round(policies::significant(hundredths, kExact)) / 100;
}

std::string percent_text(double share, const char* format) {
  return fmt::format(fmt::runtime(format), shown_percent(share));
}

std::string percent_interval(double low, double high, const char* format) {
  if (!std::isfinite(low) || !std::isfinite(high)) return "-";
  return fmt::format("[{}, {}]", percent_text(low, format), percent_text(high, format));
}

std::optional<double> known(double x) { return std::isfinite(x) ? std::optional(x) : std::nullopt; }

std::string spread_text(double half, const char* sign) {
  return std::isfinite(half) && half > 0 ? fmt::format(" {} {:.2g}", sign, half) : "";
}

std::string figure_text(double x, double half, const char* none, const char* sign) {
  return std::isfinite(x) ? fmt::format("{:.4g}{}", x, spread_text(half, sign)) : none;
}

std::string interval_text(double low, double high, const char* none) {
  return std::isfinite(low) && std::isfinite(high) ? fmt::format("[{:.4g}, {:.4g}]", low, high)
                                                   : none;
}

std::string grouped(const std::optional<double>& count) {
  if (!count) return "–";
  std::string out = fmt::format("{:.0f}", *count);
  for (std::size_t at = out.size(); at > 3 + (*count < 0); at -= 3) out.insert(at - 3, ",");
  return out;
}

}  // namespace numemu::experiments

// Numbers as people read them, the same digits wherever they are printed: decimals of any size, and
// shares in percent.
#pragma once
#include <optional>
#include <string>

namespace numemu::experiments {

/// How many decimals of a number are shown: `most`, fewer where it would have more than five digits
/// that count: 0.0123 and 2103.3 under 4.
int shown_decimals(double x, int most);
/// A loss or another number that people read with `most` decimals.
std::string decimal_text(double x, int most, bool sign = false);

/// 100 times the share, rounded to two decimals. The share counts with six digits, as rows have it;
/// halves go away from 0: 0.14375 is 14.38, whatever its float64 is.
double shown_percent(double share);
/// shown_percent() as text, with two decimals or as `format` ("{:+.2f}") has it.
std::string percent_text(double share, const char* format = "{:.2f}");
/// "[14.21, 14.55]"; "-" where there is no interval.
std::string percent_interval(double low, double high, const char* format = "{:.2f}");

/// Nothing where it is not finite.
std::optional<double> known(double x);
/// What a number may be off by, behind it: " ± 0.012"; "" where that is not known, or 0.
std::string spread_text(double half, const char* sign = "±");
/// A figure of a finding, which may be decibels or thousandths, with what it may be off by: "1.234
/// ± 0.012"; `none` where it is not finite.
std::string figure_text(double x, double half, const char* none, const char* sign = "±");
/// Titles of the columns of such figures.
inline constexpr const char *kPredictedTitle = "predicted ± tolerance",
                            *kMeasuredTitle = "measured ± half of 95 %";
/// The interval of a finding: "[1.201, 1.267]"; `none` where an end is not finite.
std::string interval_text(double low, double high, const char* none);

/// A count with its thousands apart: "10,000"; "–" if there is none.
std::string grouped(const std::optional<double>& count);

}  // namespace numemu::experiments

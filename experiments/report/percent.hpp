// A share as people read it, the same digits wherever it is printed.
#pragma once
#include <string>

namespace numemu::experiments {

/// 100 times the share, rounded to two decimals. The share counts with six digits, as rows have it;
/// halves go away from 0: 0.14375 is 14.38, whatever its float64 is.
double shown_percent(double share);
/// The same as text, with two decimals or as `format` ("{:+.2f}") has it.
std::string percent_text(double share, const char* format = "{:.2f}");
/// "[14.21, 14.55]"; "-" where there is no interval.
std::string percent_interval(double low, double high, const char* format = "{:.2f}");

}  // namespace numemu::experiments

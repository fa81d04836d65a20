// Decimals of numbers of any size: no more digits than count.
#pragma once
#include <string>

namespace numemu::experiments {

/// How many decimals of a number are shown: `most`, fewer where it would have more than five digits
/// that count: 0.0123 and 2103.3 under 4.
int shown_decimals(double x, int most);
/// A loss or another number that people read with `most` decimals.
std::string decimal_text(double x, int most, bool sign = false);

}  // namespace numemu::experiments

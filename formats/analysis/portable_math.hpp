// Logarithm and exponential from IEEE operations alone: the same bits everywhere.
#pragma once

namespace numemu::portable {

/// ln x of a finite x > 0, within 3 ulp (absolute 1e-16 near 1).
double log(double x);
/// exp x for |x| <= 700, within 3 ulp.
double exp(double x);

}  // namespace numemu::portable

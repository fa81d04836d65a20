// Logarithm, exponential and normal quantile from IEEE operations alone: the same bits everywhere.
#pragma once

namespace numemu::portable {

/// ln x of a finite x > 0, within 3 ulp (absolute 1e-16 near 1).
double log(double x);
/// exp x for |x| <= 700, within 3 ulp.
double exp(double x);
/// z with P(Z <= z) = u of a standard normal Z, 0 < u < 1, relative error about 1e-15 (Wichura
/// 1988, algorithm AS 241, PPND16).
double normal_quantile(double u);

}  // namespace numemu::portable

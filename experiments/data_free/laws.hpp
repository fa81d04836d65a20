// What the divergence of independent real data is: the floor of data made from statistics.
#pragma once
#include <cstdint>

namespace numemu::experiments::data_free {

/// n E[KL(N(mu, s2) || N(m, v))] with m and v those of n independent numbers of N(mu, s2), n > 3:
/// n / 2 (psi((n - 1) / 2) - ln(n / 2) - 1 + (n + 1) / (n - 3)), which tends to 1.
double floor_divergence(std::int64_t n);

}  // namespace numemu::experiments::data_free

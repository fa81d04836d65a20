// Laws of latencies: how long a micro-batch, a query or a transfer takes, with moments and draws
// that have the same bits on every machine.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/random.hpp"

namespace numemu::stats {

/// The law of a time, in the unit of its arguments; never below 0.
struct LatencyLaw {
  std::string name = {};  ///< "normal(1,0.4)"
  std::string identity =
      {};  ///< the name; of a file the digest of its numbers in place of the path
  /// The name; of a file the path and 16 digits of that digest, with which latency_law() refuses
  /// other numbers.
  std::string pinned = {};
  double mean = 0, variance = 0;
  std::function<double(double x)> probability;  ///< P(latency <= x)
  std::function<double(double u)> quantile;     ///< the least x with probability(x) >= u in (0, 1)

  /// The quantile at the middle of the step of 32 random bits.
  double of_bits(std::uint32_t bits) const { return quantile((bits + 0.5) * 0x1p-32); }
  double draw(const RandomSource& source, std::uint64_t i) const {
    return of_bits(source.bits(i, 32));
  }
};

/// constant(X); normal(MEAN,SIGMA), where a latency below 0 counts as 0; lognormal(MEAN,SIGMA),
/// whose arguments are mean and standard deviation of the latency itself; exponential(RATE);
/// injected(BASE,FACTOR), the delays of DropCompute's repository (Giladi et al., NeurIPS 2023):
/// BASE (1 + FACTOR/2 l/E[l]), l like the length of a sentence, P(l) proportional to
/// exp(-(ln l - 4)^2 / 2) / l for l = 1 to 999; file(PATH) or file(PATH,DIGEST), the numbers of an
/// .npy file or of a text, equally likely. Throws Error for another name (with the nearest), for
/// arguments that are not numbers from 1e-12 to 1e12 (FACTOR: or 0), for a SIGMA above 1000 MEAN,
/// and for a file of more than 64 MiB or with anything but numbers in that range.
LatencyLaw latency_law(std::string_view text);
/// The law of latencies that were measured, each equally likely; `origin` starts the messages.
/// Throws Error as latency_law() does for a file.
LatencyLaw measured_latencies(std::vector<double> latencies, const std::string& origin);

/// The draws of a step of a simulation: stream `latency`, identity USER/latency/STEP/USE.
RandomSource latency_source(std::uint64_t seed, std::string_view user, std::int64_t step,
                            std::string_view use);
/// The element of such a source that a worker's micro-batch has: up to 2^16 micro-batches of up to
/// 2^34 workers. Four micro-batches share a block of random bits.
constexpr std::uint64_t latency_element(std::int64_t worker, std::int64_t micro_batch) {
  return static_cast<std::uint64_t>(worker) << 16 | static_cast<std::uint64_t>(micro_batch);
}

}  // namespace numemu::stats

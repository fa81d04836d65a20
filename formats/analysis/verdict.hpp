// What a comparison of a prediction with its measurement decides, or why it decides nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace numemu {

enum class Verdict : std::uint8_t {
  holds,
  fails,
  undecided,
  none,      ///< not judged: nothing is predicted, or nothing was measured
  refused,   ///< not judged: no distribution fits
  withheld,  ///< not judged: the measurement is not finite
};

inline bool is_judged(Verdict verdict) { return verdict <= Verdict::undecided; }
/// "holds", "fails", "undecided", "refused", "withheld"; "" for none.
const char* to_string(Verdict);
/// The verdict of that name; none for any other text.
Verdict parse_verdict(std::string_view);

inline Verdict decide(bool holds, bool fails) {
  return holds ? Verdict::holds : fails ? Verdict::fails : Verdict::undecided;
}

/// By the distance of a prediction from its measurement: holds up to `holds`, fails beyond `fails`
/// and where the distance is NaN, else undecided.
inline Verdict verdict_by_distance(double distance, double holds, double fails) {
  return decide(distance <= holds, !(distance <= fails));
}

/// How many comparisons got which verdict; those that are not judged do not count.
struct VerdictCounts {
  std::size_t holds = 0, undecided = 0, fails = 0;

  void add(Verdict verdict) {
    holds += verdict == Verdict::holds;
    undecided += verdict == Verdict::undecided;
    fails += verdict == Verdict::fails;
  }
  std::size_t compared() const { return holds + undecided + fails; }
  /// Of all together: holds where all do, fails with any; none where nothing was compared.
  Verdict verdict() const {
    return compared() == 0 ? Verdict::none : decide(holds == compared(), fails > 0);
  }
};

}  // namespace numemu

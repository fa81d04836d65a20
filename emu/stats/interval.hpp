// Confidence intervals of proportions and of their paired differences, at 95 % unless told
// otherwise.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

namespace numemu::stats {

/// Standard errors from the middle to either end: the 97.5 % point of the standard normal law.
inline constexpr double kNormal95 = 1.959963984540054;
/// For 99 %: the 99.5 % point.
inline constexpr double kNormal99 = 2.5758293035489004;

struct Interval {
  double low, high;
};

/// Wilson's score interval of a proportion (Wilson 1927), `z` standard errors to either end; [0, 1]
/// for n = 0. 0 <= successes <= n. Here and below `times` scales all counts: the interval of
/// `times` as many samples with the same shares.
Interval wilson(std::int64_t successes, std::int64_t n, double z = kNormal95, double times = 1);
/// The largest share of a population that none of n samples shows, at 95 %: the upper end of the
/// exact interval for 0 of n, 1 - 0.025^(1/n) (Clopper and Pearson 1934); 1 for n = 0.
double share_of_none(std::int64_t n);
/// What two classifiers make of the same n images: right in both, in the first alone, in the second
/// alone.
struct PairedAnswers {
  std::int64_t both = 0, only1 = 0, only2 = 0, n = 0;
};
/// Counted over the images 0 to n - 1, of which a classifier is right where its function says so.
PairedAnswers count_answers(std::int64_t n, const std::function<bool(std::int64_t)>& first,
                            const std::function<bool(std::int64_t)>& second);
/// Interval of p1 - share p2, the mean over images of right1 - share right2: the means that the
/// score test at `z` standard errors does not reject, its variance that of the likeliest shares
/// with that mean. Tango (1998) for share = 1, Wilson's interval for share = 0, [-share, 1] for n =
/// 0. 0 <= share.
Interval paired_share(const PairedAnswers&, double share, double z, double times = 1);
/// By how many standard errors the observed mean is above `mean`, inside (-share, 1), in that test:
/// the interval holds the means where it is within `z`. n > 0.
double paired_score(const PairedAnswers&, double share, double mean);
/// Interval of the difference p1 - p2 of two classifiers on the same n images, from the discordant
/// counts (only1 right where the other is wrong, only2 the converse): paired_share of share 1.
Interval paired_difference(std::int64_t only1, std::int64_t only2, std::int64_t n);
/// Variance over images of right1 - share right2.
double paired_share_variance(const PairedAnswers&, double share);

/// A planning figure, before any sample is seen: the images at which `z` standard errors of a mean
/// are as long as `distance`, z^2 variance / distance^2.
double images_needed(double variance, double distance, double z);

/// The least n from 1 to `most` at which `decides(n)`, for a sample of `n` that decides or not and
/// a question that is decided at all larger n once it is: by doubling and bisection. Nothing if
/// none does.
std::optional<std::int64_t> least_deciding(const std::function<bool(std::int64_t)>& decides,
                                           std::int64_t n, std::int64_t most);

}  // namespace numemu::stats

// Several image sizes in one training (Mix & Match, Hoffer et al. 2019, arXiv 1908.08986): what is
// chosen, and what each step of an epoch works on.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

class Dataset;
struct TrainOptions;

struct ImageSizes {
  struct Share {
    std::int64_t size = 0;  ///< height and width in pixels
    double share = 0;       ///< of the steps

    bool operator==(const Share&) const = default;
  };
  std::vector<Share> shares;  ///< empty: images as the data set has them
  /// What keeps the cost of a step where images are smaller or larger: "batch" (B+), "copies" (D+),
  /// "both", or "none".
  std::string change = "batch";
  /// Every so many steps the norm of a step's gradient is compared with that of one copy alone, and
  /// the loss is scaled to it (gradient smoothing); 0: never.
  std::int64_t smoothing = 0;
};

/// "32:0.3,48:0.2,24:0.3,16:0.2". Throws Error for another form; the values are checked by check().
std::vector<ImageSizes::Share> parse_image_sizes(std::string_view text);
/// "32:0.3,48:0.2,24:0.3,16:0.2 change copies smoothing 10", zero smoothing left out.
std::string to_string(const ImageSizes&);
/// Part of check(TrainOptions). Throws Error naming the option.
void check_image_sizes(const TrainOptions&);

/// What a step works on.
struct PlannedStep {
  std::int64_t first = 0, samples = 0;  ///< places in the epoch's order
  std::int64_t image = 0;               ///< height and width; 0: as the data set has them
  std::int64_t copies = 1;
};

/// Samples and copies of a step with images of `size` pixels, where options.batch and
/// options.copies belong to images of `own` pixels: round(batch (own/size)^2), or of copies, at
/// least 1; with "both" each changes by own/size. Where less than half a copy would be left, the
/// batch changes instead.
PlannedStep sized_step(const TrainOptions&, std::int64_t own, std::int64_t size);

/// The steps of an epoch, of which the last one has what is left of the samples. The size of step i
/// is drawn from 32 bits of element i of stream `data`, tensor "data/image-size/EPOCH".
std::vector<PlannedStep> epoch_steps(const TrainOptions&, const Dataset&, std::int64_t epoch);

}  // namespace numemu::net

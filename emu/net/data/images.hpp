// Labelled images as bytes, and the samples of an image set made of them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/samples.hpp"

namespace numemu::net {

/// Images NHWC uint8 and their labels.
struct Images {
  std::int64_t count = 0, height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels, labels;
};

/// (level / 255 - mean) / deviation of each channel and byte, in float64 and rounded to float32:
/// [channel][256].
std::vector<float> normalisation_table(const std::vector<double>& mean,
                                       const std::vector<double>& deviation);
/// Image number `id`, bytes [height, width, channels], by the table, plain or through an augmented
/// view; beyond the edge a view has byte 0.
void write_image(const std::uint8_t* image, const Shape&, const std::vector<float>& table,
                 const AugmentDraw*, std::int64_t id, float* x);

/// An image set: the last 5,000 training images are validation, the first 512 calibration.
class ImageSamples final : public Samples {
 public:
  static constexpr std::int64_t kValidation = 5'000;
  static constexpr std::int64_t kCalibration = 512;

  /// `mean` and `deviation` per channel, on pixels of [0, 1]. Throws Error naming the set when it
  /// is too small or the arrays do not fit their extents. The digest is the SHA-256 of the SHA-256
  /// of training pixels, training labels, test pixels and test labels.
  ImageSamples(const std::string& name, std::int64_t classes, Images train, Images test,
               const std::vector<double>& mean, const std::vector<double>& deviation);

  void read(Part, std::int64_t id, const AugmentDraw*, float* x, TargetSpan) const override;

 private:
  Images train_, test_;
  std::vector<float> table_;  ///< [channel][256] normalised pixel values
};

}  // namespace numemu::net

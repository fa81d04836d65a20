// Augmentation of training images: which pixel of the stored image each pixel of the batch shows.
#pragma once
#include <cstdint>

namespace numemu::net {

/// What to vary, image by image. The order is crop, flip, shift.
struct Augmentation {
  /// Moves by -shift..shift pixels, drawn for rows and columns; what comes in is black (byte 0,
  /// which is -mean / deviation after normalisation). Padding by 4 and cropping back, as networks
  /// for CIFAR-10 are trained with (He et al. 2016), is shift = 4.
  std::int64_t shift = 0;
  bool flip = false;  ///< mirrors left and right with probability 1/2
  /// Keeps a window that is 0..crop pixels smaller in both directions, at a drawn place, enlarged
  /// to the full size by its nearest pixels.
  std::int64_t crop = 0;
};

/// Every draw is a function of these and the number of the image.
struct AugmentDraw {
  Augmentation what;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t copy = 0;  ///< of a batch with several views of each image
};

/// How one image is seen.
struct ImageView {
  std::int64_t height = 0, width = 0;
  std::int64_t down = 0, right = 0;  ///< the shift
  bool mirrored = false;
  std::int64_t top = 0, left = 0, window_height = 0, window_width = 0;  ///< the crop

  /// The stored pixel (row * width + column) that pixel (y, x) shows, -1 for black.
  std::int64_t source(std::int64_t y, std::int64_t x) const;
};

/// Throws Error unless 0 <= shift and crop < both extents.
void check(const Augmentation&, std::int64_t height, std::int64_t width);
/// The view of training image `id`, whose stored extents are given: draws of Stream::augment under
/// "data/augment/EPOCH/USE", for copy C > 0 "data/augment/EPOCH/USE/C". Throws Error as check()
/// does.
ImageView draw_view(const AugmentDraw&, std::int64_t id, std::int64_t height, std::int64_t width);

}  // namespace numemu::net

// The interface of kinds of data sets: their facts, and how one sample is made.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

// Augmentation of training images: which pixel of the stored image each pixel of the batch shows.

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

enum class TargetKind : std::uint8_t {
  classes,  ///< class numbers: one of an image, one for each token of a window or pixel of a map
  values,   ///< real numbers: of a regression, of an image
  none
};

/// What the samples of a data set have for one output of a network.
struct TargetFacts {
  std::string output = {};  ///< its name; "" is the network's first
  TargetKind target = TargetKind::classes;
  std::int64_t classes = 0;  ///< every class number is below; 0 without classes
  Shape target_shape = {};   ///< of one sample: {} of one number, [context], [height, width], ...
};

/// A class number that no class has: this position is not counted.
inline constexpr std::int32_t kNoClass = -1;

/// [samples, target_shape...] of DataFacts, sample by sample; the array of the other kind is empty.
struct Targets {
  std::vector<std::int32_t> classes;
  std::vector<float> values;
  std::vector<Targets> further = {};  ///< of DataFacts::further
};

/// Where the targets of one sample go; null for what the data set has none of.
struct TargetSpan {
  std::int32_t* classes = nullptr;
  float* values = nullptr;
  const TargetSpan* further = nullptr;  ///< one for each of DataFacts::further; null: not asked for
};

/// The kinds of data sets; each network requires one.
enum class DataKind : std::uint8_t { images, text, clicks, arrays };
std::string_view to_string(DataKind);

/// Where a sample is stored; calibration samples are the first of training.
enum class Part : std::uint8_t { train, validation, test };

/// Samples per split. Calibration samples are training samples too.
struct SplitSizes {
  std::int64_t train = 0, validation = 0, calibration = 0, test = 0;
};

/// What is known of a data set without reading a sample. The targets are those of the first output
/// that has some.
struct DataFacts : TargetFacts {
  std::vector<TargetFacts> further = {};  ///< of other outputs
  DataKind kind = DataKind::images;
  std::string_view noun = "images";  ///< what errors call the samples
  Shape input_shape = {};  ///< of one sample; of several inputs a packed one, see unpacked()
  /// Those with names; empty: one without.
  std::vector<NamedShape> inputs = {};
  SplitSizes sizes = {};
  std::string digest = {};  ///< 16 hexadecimal digits that differ where any sample does
  std::string note = {};    ///< how files were taken, for the user; often empty
};

/// The samples of one data set; never changes, so copies of the set share it.
class Samples {
 public:
  virtual ~Samples() = default;
  const DataFacts& facts() const { return facts_; }
  /// Writes sample `id` of a part (the caller checked that it is there) to `x`, input_shape
  /// elements, and its targets, target_shape elements, to `targets`. `draw` is null where nothing
  /// is augmented, as always with other kinds than images.
  virtual void read(Part, std::int64_t id, const AugmentDraw* draw, float* x,
                    TargetSpan targets) const = 0;

 protected:
  DataFacts facts_;
};

}  // namespace numemu::net

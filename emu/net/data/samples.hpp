// The interface of kinds of data sets: their facts, and how one sample is made.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/augment.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

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

// A labelled image set with fixed splits; pixels stay bytes until a batch is made.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Images NHWC uint8 and their labels.
struct Images {
  std::int64_t count = 0, height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels, labels;
};

/// Splits: the last 5,000 training images are validation, the first 512 calibration (and still
/// training). The test split is read only to report: test_reads() counts the calls, and a test
/// proves that training makes none. Every batch throws Error when asked for images outside its
/// split.
class Dataset {
 public:
  static constexpr std::int64_t kValidation = 5'000;
  static constexpr std::int64_t kCalibration = 512;

  /// `mean` and `deviation` per channel, on pixels of [0, 1]. Throws Error naming the set when it
  /// is too small or the arrays do not fit their extents.
  Dataset(std::string name, std::int64_t classes, Images train, Images test,
          const std::vector<double>& mean, const std::vector<double>& deviation);

  const std::string& name() const { return name_; }
  /// Identity of the images: 16 hexadecimal digits of the SHA-256 of the SHA-256 of training
  /// pixels, training labels, test pixels and test labels.
  const std::string& digest() const { return digest_; }
  std::int64_t classes() const { return classes_; }
  Shape input_shape() const { return {train_.height, train_.width, train_.channels}; }
  std::int64_t train_count() const { return train_.count - kValidation; }
  std::int64_t validation_count() const { return kValidation; }
  std::int64_t test_count() const { return test_.count; }

  /// [ids.size(), height, width, channels] of (pixel / 255 - mean) / deviation, computed once per
  /// byte value in float64 and rounded to float32; labels beside.
  Tensor train_batch(const std::vector<std::int64_t>& ids, std::vector<std::uint8_t>& labels) const;
  Tensor validation_batch(std::int64_t first, std::int64_t count,
                          std::vector<std::uint8_t>& labels) const;
  Tensor calibration_batch(std::int64_t first, std::int64_t count,
                           std::vector<std::uint8_t>& labels) const;
  Tensor test_batch(std::int64_t first, std::int64_t count,
                    std::vector<std::uint8_t>& labels) const;
  /// How often test_batch was called.
  std::int64_t test_reads() const { return test_reads_; }

 private:
  Tensor batch(const Images&, const std::vector<std::int64_t>& ids,
               std::vector<std::uint8_t>& labels) const;
  std::vector<std::int64_t> run_of(std::string_view split, std::int64_t size, std::int64_t first,
                                   std::int64_t count) const;

  std::string name_, digest_;
  std::int64_t classes_;
  Images train_, test_;
  std::vector<float> table_;  ///< [channel][256] normalised pixel values
  mutable std::int64_t test_reads_ = 0;
};

/// "glyphs", "mnist:DIR", "cifar10:DIR". `cache_folder` is where generated sets are kept.
/// Throws Error naming file, offset and what was expected.
Dataset load_dataset(std::string_view name, const std::string& cache_folder);

}  // namespace numemu::net

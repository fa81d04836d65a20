// A labelled data set with fixed splits; samples stay compact until a batch is made.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/images.hpp"
#include "emu/net/data/samples.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Splits: training, validation, test, and calibration, the first samples of training. The test
/// split is read only to report: test_reads() counts the calls, and a test proves that training
/// makes none. Every batch throws Error for samples outside its split. Copies share the
/// samples.
class Dataset {
 public:
  /// Of image sets; see calibration_count() and validation_count() for any set.
  static constexpr std::int64_t kValidation = ImageSamples::kValidation;
  static constexpr std::int64_t kCalibration = ImageSamples::kCalibration;

  /// An image set; see ImageSamples.
  Dataset(std::string name, std::int64_t classes, Images train, Images test,
          const std::vector<double>& mean, const std::vector<double>& deviation);
  Dataset(std::string name, std::shared_ptr<const Samples> samples);

  const std::string& name() const { return name_; }
  DataKind kind() const { return facts().kind; }
  /// Identity of the samples: 16 hexadecimal digits.
  const std::string& digest() const { return facts().digest; }
  TargetKind target() const { return facts().target; }
  /// How its files were taken, for the user; often empty.
  const std::string& note() const { return facts().note; }
  /// Classes of images, characters of a text, 2 for clicks, 0 where targets are no classes.
  std::int64_t classes() const { return facts().classes; }
  /// One sample: [height, width, channels], [context] character numbers, or [dense + categorical]
  /// features of a click; of several inputs a packed one.
  const Shape& input_shape() const { return facts().input_shape; }
  /// The inputs with names; empty where there is one without.
  const std::vector<NamedShape>& inputs() const { return facts().inputs; }
  /// A batch as one tensor per input.
  std::vector<Tensor> inputs_of(Tensor batch) const { return unpacked(std::move(batch), inputs()); }
  /// Outputs of a network that the set knows of: 1 and those of DataFacts::further.
  std::size_t outputs() const { return 1 + facts().further.size(); }
  /// The targets of output i.
  const TargetFacts& targets_of(std::size_t i) const {
    return i == 0 ? facts() : facts().further.at(i - 1);
  }
  /// Of the targets of one sample: {} of one class, [context] of a text.
  const Shape& target_shape() const { return facts().target_shape; }
  /// What one target of a text is: a "character", or a "token" where the set holds numbers of
  /// those.
  std::string_view text_unit() const { return name_ == "tokens" ? "token" : "character"; }
  /// Number of targets per sample, 0 where there are none.
  std::int64_t targets_per_sample() const {
    return target() == TargetKind::none ? 0 : element_count(target_shape());
  }
  std::int64_t train_count() const { return facts().sizes.train; }
  std::int64_t validation_count() const { return facts().sizes.validation; }
  std::int64_t calibration_count() const { return facts().sizes.calibration; }
  std::int64_t test_count() const { return facts().sizes.test; }

  /// [samples, input_shape...]; `targets` gets those of the samples. With an augmentation (of
  /// images; anything else is an Error) what a training image looks like is a function of `seed`,
  /// `epoch`, its number, and of the copy: each image fills `copies` neighbouring rows, copy 0
  /// first (batch augmentation, Hoffer et al., CVPR 2020).
  Tensor train_batch(const std::vector<std::int64_t>& ids, Targets& targets,
                     const Augmentation* = nullptr, std::uint64_t seed = 0, std::int64_t epoch = 0,
                     std::int64_t copies = 1) const;
  Tensor validation_batch(std::int64_t first, std::int64_t count, Targets& targets) const;
  Tensor calibration_batch(std::int64_t first, std::int64_t count, Targets& targets) const;
  Tensor test_batch(std::int64_t first, std::int64_t count, Targets& targets) const;
  /// What the batches are made of.
  const std::shared_ptr<const Samples>& samples() const { return samples_; }
  /// How often test_batch was called.
  std::int64_t test_reads() const { return test_reads_; }

 private:
  const DataFacts& facts() const { return samples_->facts(); }
  Tensor batch(Part, const std::vector<std::int64_t>& ids, const AugmentDraw*, Targets&,
               std::int64_t copies = 1) const;
  std::vector<std::int64_t> run_of(std::string_view split, std::int64_t size, std::int64_t first,
                                   std::int64_t count) const;

  std::string name_;
  std::shared_ptr<const Samples> samples_;
  mutable std::int64_t test_reads_ = 0;
};

/// A set of docs/data.md by its name and options. `cache_folder` is where generated
/// sets are kept. Throws Error naming file, offset and what was expected.
Dataset load_dataset(std::string_view name, const std::string& cache_folder);

}  // namespace numemu::net

#include "emu/net/data/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/random.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kMostSize = 4096;
constexpr std::size_t kDigestDigits = 16;

/// How much of extent `from`, cut into `to` cells, cell `cell` has of pixel `pixel`, in shares of a
/// pixel of 1 / to: whole numbers that add up to `from`.
std::int64_t overlap(std::int64_t cell, std::int64_t pixel, std::int64_t from, std::int64_t to) {
  return std::min((cell + 1) * from, (pixel + 1) * to) - std::max(cell * from, pixel * to);
}

/// [height, width, channels] to [size, size, channels]: sums in float64 by rows, rounded once.
void resize(const float* image, const Shape& from, std::int64_t size, float* out) {
  const std::int64_t height = from[0], width = from[1], channels = from[2];
  const auto area = static_cast<double>(height * width);
  for (std::int64_t y = 0; y < size; ++y) {
    const std::int64_t top = y * height / size, bottom = ((y + 1) * height - 1) / size;
    for (std::int64_t x = 0; x < size; ++x) {
      const std::int64_t left = x * width / size, right = ((x + 1) * width - 1) / size;
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (std::int64_t i = top; i <= bottom; ++i) {
          double row = 0;
          for (std::int64_t j = left; j <= right; ++j) {
            row += static_cast<double>(overlap(x, j, width, size)) *
                   static_cast<double>(image[(i * width + j) * channels + c]);
          }
          sum += static_cast<double>(overlap(y, i, height, size)) * row;
        }
        *out++ = static_cast<float>(sum / area);
      }
    }
  }
}

class ViewedSamples final : public Samples {
 public:
  ViewedSamples(std::shared_ptr<const Samples> stored, const DataView& view)
      : stored_(std::move(stored)), view_(view) {
    facts_ = stored_->facts();
    facts_.digest = sha256_hex(facts_.digest + " view " + to_string(view)).substr(0, kDigestDigits);
    if (view.image_size > 0) facts_.input_shape[0] = facts_.input_shape[1] = view.image_size;
    replaced_ = {view.seed, Stream::data, tensor_word("data/labels/replaced"), 0};
    class_ = {view.seed, Stream::data, tensor_word("data/labels/class"), 0};
    below_ = static_cast<std::uint64_t>(std::floor(view.label_noise * 0x1p32));
  }

  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    if (view_.image_size == 0) {
      stored_->read(part, id, draw, x, targets);
    } else {
      const Shape& shape = stored_->facts().input_shape;
      thread_local std::vector<float> image;
      image.resize(static_cast<std::size_t>(element_count(shape)));
      stored_->read(part, id, draw, image.data(), targets);
      resize(image.data(), shape, view_.image_size, x);
    }
    const auto sample = static_cast<std::uint64_t>(id);
    if (part == Part::train && replaced_.bits(sample, 32) < below_) {
      // One of the others: 1 to classes - 1 further on.
      const auto others = static_cast<std::uint64_t>(facts_.classes - 1);
      const std::uint64_t further = 1 + ((class_.bits(sample, 32) * others) >> 32);
      const auto label = static_cast<std::uint64_t>(*targets.classes);
      *targets.classes =
          static_cast<std::int32_t>((label + further) % static_cast<std::uint64_t>(facts_.classes));
    }
  }

 private:
  std::shared_ptr<const Samples> stored_;
  DataView view_;
  RandomSource replaced_, class_;
  std::uint64_t below_ = 0;  ///< a label is replaced where its 32 bits are
};

class CalibratedSamples final : public Samples {
 public:
  /// `calibrates`: else the samples are only a reference, and no overlap matters.
  CalibratedSamples(std::shared_ptr<const Samples> own, const Dataset& other, bool calibrates)
      : own_(std::move(own)),
        other_(other.samples()),
        calibrates_(calibrates),
        from_(other.train_count() > 0 ? Part::train : Part::test) {
    facts_ = own_->facts();
    const std::int64_t test = std::min<std::int64_t>(other.test_count(), kMostCalibration);
    facts_.sizes.calibration = from_ == Part::train ? other.calibration_count() : test;
    facts_.sizes.train = facts_.sizes.calibration;
    facts_.digest =
        sha256_hex(facts_.digest + " calibrated on " + other.digest()).substr(0, kDigestDigits);
    if (calibrates) {
      count_shared();
    } else {
      note_ = fmt::format(
          "All samples are of the test; noise is measured and predicted on the first {} of them. "
          "Nothing is calibrated.",
          facts_.sizes.calibration);
    }
  }

  const std::string& note() const { return note_; }
  bool calibrates() const { return calibrates_; }

  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    if (part != Part::train) return own_->read(part, id, draw, x, targets);
    // The other's targets may be of any kind; calibration reads none.
    const auto n = static_cast<std::size_t>(element_count(other_->facts().target_shape));
    std::vector<std::int32_t> classes(n);
    std::vector<float> values(n);
    const TargetKind kind = other_->facts().target;
    other_->read(from_, id, draw, x,
                 {kind == TargetKind::classes ? classes.data() : nullptr,
                  kind == TargetKind::values ? values.data() : nullptr});
    const std::int64_t each = element_count(facts_.target_shape);
    if (targets.classes != nullptr) std::fill_n(targets.classes, each, kNoClass);
    if (targets.values != nullptr) std::fill_n(targets.values, each, 0.0f);
  }

 private:
  static constexpr std::int64_t kMostCalibration = 512, kMostCompared = 1024;

  /// The bits of a sample's inputs.
  std::string bits_of(const Samples& samples, Part part, std::int64_t id) const {
    std::vector<float> x(static_cast<std::size_t>(element_count(facts_.input_shape)));
    const auto n = static_cast<std::size_t>(element_count(samples.facts().target_shape));
    std::vector<std::int32_t> classes(n);
    std::vector<float> values(n);
    const TargetKind kind = samples.facts().target;
    samples.read(part, id, nullptr, x.data(),
                 {kind == TargetKind::classes ? classes.data() : nullptr,
                  kind == TargetKind::values ? values.data() : nullptr});
    return sha256_hex({reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)});
  }

  void count_shared() {
    const std::int64_t test = std::min(facts_.sizes.test, kMostCompared),
                       used = std::min(facts_.sizes.calibration, kMostCalibration);
    std::set<std::string> of_test;
    for (std::int64_t i = 0; i < test; ++i) of_test.insert(bits_of(*own_, Part::test, i));
    std::int64_t shared = 0;
    for (std::int64_t i = 0; i < used; ++i) shared += of_test.contains(bits_of(*other_, from_, i));
    if (shared > 0)
      note_ = fmt::format(
          "{} of the first {} calibration samples are samples of the test, so the accuracy is not "
          "that on unseen data.",
          shared, used);
  }

  std::shared_ptr<const Samples> own_, other_;
  bool calibrates_;
  Part from_;
  std::string note_;
};

/// Some of the test samples.
class ChosenSamples final : public Samples {
 public:
  ChosenSamples(std::shared_ptr<const Samples> stored, std::vector<std::int64_t> chosen)
      : stored_(std::move(stored)), chosen_(std::move(chosen)) {
    facts_ = stored_->facts();
    facts_.sizes.test = std::ssize(chosen_);
  }

  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    stored_->read(part, part == Part::test ? chosen_[static_cast<std::size_t>(id)] : id, draw, x,
                  targets);
  }

 private:
  std::shared_ptr<const Samples> stored_;
  std::vector<std::int64_t> chosen_;
};

/// Other outputs, or the same in another order.
class OutputSamples final : public Samples {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Output {
    TargetFacts facts;
    std::size_t stored = kNone;  ///< number of the stored one
  };

  OutputSamples(std::shared_ptr<const Samples> stored, const std::vector<Output>& outputs)
      : stored_(std::move(stored)), outputs_(1 + stored_->facts().further.size(), kNone) {
    facts_ = stored_->facts();
    static_cast<TargetFacts&>(facts_) = outputs.front().facts;
    facts_.further.clear();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (o > 0) facts_.further.push_back(outputs[o].facts);
      if (outputs[o].stored != kNone) outputs_[outputs[o].stored] = o;
    }
  }

  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    std::vector<TargetSpan> stored;
    for (const std::size_t o : outputs_) {
      const bool asked = o == 0 || (o != kNone && targets.further != nullptr);
      stored.push_back(!asked ? TargetSpan() : o == 0 ? targets : targets.further[o - 1]);
    }
    TargetSpan first = stored.front();
    first.further = stored.data() + 1;
    stored_->read(part, id, draw, x, first);
  }

 private:
  std::shared_ptr<const Samples> stored_;
  std::vector<std::size_t> outputs_;  ///< by stored output: the own one
};

std::string inputs_text(const Dataset& data) {
  std::vector<std::string> texts;
  for (const NamedShape& input : data.inputs())
    texts.push_back(input.name + " " + to_string(input.shape));
  return texts.empty() ? to_string(data.input_shape()) : joined(texts, ", ");
}

TargetFacts without_targets(const std::string& output) {
  return {.output = output, .target = TargetKind::none, .classes = 0, .target_shape = {}};
}

}  // namespace

Dataset chosen_test(const Dataset& data, std::vector<std::int64_t> samples) {
  return {data.name(), std::make_shared<ChosenSamples>(data.samples(), std::move(samples))};
}

Dataset at_output(const Dataset& data, std::size_t output) {
  if (data.outputs() == 1 && output == 0) return data;
  return {data.name(), std::make_shared<OutputSamples>(
                           data.samples(),
                           std::vector<OutputSamples::Output>{{data.targets_of(output), output}})};
}

Dataset at_outputs(const Dataset& data, std::span<const NamedShape> outputs) {
  const bool named = data.outputs() > 1 || !data.targets_of(0).output.empty();
  if (outputs.size() < 2 && !named) return data;
  std::vector<OutputSamples::Output> own;
  std::vector<std::string> names;
  for (const NamedShape& output : outputs) {
    own.push_back({without_targets(output.name), OutputSamples::kNone});
    names.push_back(output.name);
  }
  if (own.empty()) own.push_back({without_targets(""), OutputSamples::kNone});
  for (std::size_t i = 0; i < data.outputs(); ++i) {
    TargetFacts facts = data.targets_of(i);
    const auto found = std::ranges::find(names, facts.output);
    const auto o = static_cast<std::size_t>(facts.output.empty() ? 0 : found - names.begin());
    if (!facts.output.empty() && found == names.end())
      throw Error(fmt::format("data set {}: targets of {}: expected an output of the network: {}",
                              data.name(), facts.output,
                              names.empty() ? "it has one without a name" : joined(names, ", ")));
    if (facts.target == TargetKind::none) continue;
    if (own[o].stored != OutputSamples::kNone)
      throw Error(fmt::format("data set {}: expected one array of targets of output {}, the first",
                              data.name(), names.empty() ? "" : names[o]));
    // A class may have no sample.
    if (facts.target == TargetKind::classes && !facts.output.empty() && !outputs[o].shape.empty())
      facts.classes = std::max(facts.classes, outputs[o].shape.back());
    if (!names.empty()) facts.output = names[o];
    own[o] = {std::move(facts), i};
  }
  return {data.name(), std::make_shared<OutputSamples>(data.samples(), own)};
}

Dataset calibrated_on(const Dataset& data, const Dataset& calibration) {
  const auto same = [](const NamedShape& a, const NamedShape& b) {
    return a.name == b.name && a.shape == b.shape;
  };
  if (!std::ranges::equal(data.inputs(), calibration.inputs(), same))
    throw Error("calibrate-on: expected samples of the same inputs, " + inputs_text(data) +
                ", found " + inputs_text(calibration));
  if (data.input_shape() != calibration.input_shape()) {
    throw Error(fmt::format("calibrate-on: expected samples of {}, as {} has, found {}",
                            to_string(data.input_shape()), data.name(),
                            to_string(calibration.input_shape())));
  }
  return {data.name(), std::make_shared<CalibratedSamples>(data.samples(), calibration, true)};
}

Dataset with_test_reference(const Dataset& data) {
  return {data.name(), std::make_shared<CalibratedSamples>(data.samples(), data, false)};
}

std::string calibration_note(const Dataset& data, bool calibrates) {
  const auto* const samples = dynamic_cast<const CalibratedSamples*>(data.samples().get());
  return samples == nullptr || (samples->calibrates() && !calibrates) ? "" : samples->note();
}

std::string to_string(const DataView& view) {
  std::string text;
  if (view.image_size > 0) text += fmt::format("image-size {}", view.image_size);
  if (view.label_noise > 0) {
    text += fmt::format("{}label-noise {} seed {}", text.empty() ? "" : " ", view.label_noise,
                        view.seed);
  }
  return text;
}

Dataset view_of(const Dataset& data, const DataView& view) {
  if (view.image_size < 0 || view.image_size > kMostSize) {
    throw Error(
        fmt::format("image-size: expected 1 to {} pixels, found {}", kMostSize, view.image_size));
  }
  if (!(view.label_noise >= 0 && view.label_noise <= 1))
    throw Error(
        fmt::format("label-noise: expected a share from 0 to 1, found {}", view.label_noise));
  if (view.image_size > 0 && data.kind() != DataKind::images) {
    throw Error(fmt::format("image-size: expected images, data set {} has {}", data.name(),
                            to_string(data.kind())));
  }
  if (view.label_noise > 0 && (data.targets_per_sample() != 1 || data.classes() < 2)) {
    throw Error(
        fmt::format("label-noise: expected one label of several classes per sample, data "
                    "set {} has {} of {}",
                    data.name(), data.targets_per_sample(), data.classes()));
  }
  DataView own = view;
  if (data.input_shape() == Shape{view.image_size, view.image_size, data.input_shape().back()})
    own.image_size = 0;
  if (to_string(own).empty()) return data;
  return {data.name(), std::make_shared<ViewedSamples>(data.samples(), own)};
}

namespace {

class RecalibratedSamples final : public Samples {
 public:
  RecalibratedSamples(std::shared_ptr<const Samples> own, std::int64_t count)
      : own_(std::move(own)) {
    facts_ = own_->facts();
    facts_.sizes.calibration = count;
    facts_.digest = sha256_hex(fmt::format("{} calibration {}", facts_.digest, count))
                        .substr(0, facts_.digest.size());
  }
  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    own_->read(part, id, draw, x, targets);
  }

 private:
  std::shared_ptr<const Samples> own_;
};

}  // namespace

Dataset with_calibration(const Dataset& data, std::int64_t count) {
  if (count < 1 || count > data.train_count()) {
    throw Error(fmt::format("calibration: expected 1 to {} training samples of {}, found {}",
                            data.train_count(), data.name(), count));
  }
  if (count == data.calibration_count()) return data;
  return {data.name(), std::make_shared<RecalibratedSamples>(data.samples(), count)};
}

}  // namespace numemu::net

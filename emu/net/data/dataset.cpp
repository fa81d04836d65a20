// Splits: which samples a batch may hold, and making it.
#include "emu/net/data/dataset.hpp"

#include <fmt/format.h>

#include <atomic>
#include <numeric>
#include <utility>

#include "formats/error.hpp"

namespace numemu::net {

std::string_view to_string(DataKind kind) {
  switch (kind) {
    case DataKind::images:
      return "images";
    case DataKind::text:
      return "text";
    case DataKind::clicks:
      return "clicks";
    case DataKind::arrays:
      return "arrays";
  }
  throw Error("data kind " + std::to_string(static_cast<int>(kind)) + " is none");
}

Dataset::Dataset(std::string name, std::shared_ptr<const Samples> samples)
    : name_(std::move(name)), samples_(std::move(samples)) {}

Dataset::Dataset(std::string name, std::int64_t classes, Images train, Images test,
                 const std::vector<double>& mean, const std::vector<double>& deviation)
    : name_(std::move(name)),
      samples_(std::make_shared<ImageSamples>(name_, classes, std::move(train), std::move(test),
                                              mean, deviation)) {}

namespace {

/// Makes room for the targets of a batch.
void prepare(const TargetFacts& facts, std::int64_t samples, Targets& targets) {
  const auto n = static_cast<std::size_t>(samples * element_count(facts.target_shape));
  targets.classes.assign(facts.target == TargetKind::classes ? n : 0, kNoClass);
  targets.values.assign(facts.target == TargetKind::values ? n : 0, 0);
}

/// Where those of sample i go.
TargetSpan place_of(const TargetFacts& facts, std::int64_t i, Targets& targets) {
  const std::int64_t each = element_count(facts.target_shape);
  return {facts.target == TargetKind::classes ? targets.classes.data() + i * each : nullptr,
          facts.target == TargetKind::values ? targets.values.data() + i * each : nullptr};
}

}  // namespace

Tensor Dataset::batch(Part part, const std::vector<std::int64_t>& ids, const AugmentDraw* draw,
                      Targets& targets, std::int64_t copies) const {
  Shape shape = input_shape();
  const std::int64_t size = element_count(shape);
  const std::vector<TargetFacts>& further = facts().further;
  shape.insert(shape.begin(), static_cast<std::int64_t>(ids.size()) * copies);
  Tensor out(shape);
  prepare(facts(), out.dim(0), targets);
  targets.further.resize(further.size());
  for (std::size_t o = 0; o < further.size(); ++o)
    prepare(further[o], out.dim(0), targets.further[o]);
  std::vector<TargetSpan> of_further(further.size());
  AugmentDraw own = draw == nullptr ? AugmentDraw{} : *draw;
  for (std::int64_t i = 0; i < out.dim(0); ++i) {
    own.copy = i % copies;
    TargetSpan own_targets = place_of(facts(), i, targets);
    for (std::size_t o = 0; o < further.size(); ++o)
      of_further[o] = place_of(further[o], i, targets.further[o]);
    if (!further.empty()) own_targets.further = of_further.data();
    samples_->read(part, ids[i / copies], draw == nullptr ? nullptr : &own,
                   out.data.data() + i * size, own_targets);
  }
  return out;
}

std::vector<std::int64_t> Dataset::run_of(std::string_view split, std::int64_t size,
                                          std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > size || count > size - first) {
    throw Error(fmt::format("{}: expected a range of the {} {} {}, found {} from {}", name_, size,
                            split, facts().noun, count, first));
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

Tensor Dataset::train_batch(const std::vector<std::int64_t>& ids, Targets& targets,
                            const Augmentation* augmentation, std::uint64_t seed,
                            std::int64_t epoch, std::int64_t copies) const {
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= train_count()) {
      throw Error(fmt::format("{}: expected training {} 0..{}, found {}", name_, facts().noun,
                              train_count() - 1, id));
    }
  }
  if (augmentation == nullptr) return batch(Part::train, ids, nullptr, targets, copies);
  if (kind() != DataKind::images) {
    throw Error(
        fmt::format("{}: augmentation: expected images, found {}", name_, to_string(kind())));
  }
  const AugmentDraw draw{*augmentation, seed, epoch};
  return batch(Part::train, ids, &draw, targets, copies);
}

Tensor Dataset::validation_batch(std::int64_t first, std::int64_t count, Targets& targets) const {
  return batch(Part::validation, run_of("validation", validation_count(), first, count), nullptr,
               targets);
}

Tensor Dataset::calibration_batch(std::int64_t first, std::int64_t count, Targets& targets) const {
  return batch(Part::train, run_of("calibration", calibration_count(), first, count), nullptr,
               targets);
}

Tensor Dataset::test_batch(std::int64_t first, std::int64_t count, Targets& targets) const {
  std::atomic_ref(test_reads_).fetch_add(1, std::memory_order_relaxed);
  return batch(Part::test, run_of("test", test_count(), first, count), nullptr, targets);
}

}  // namespace numemu::net

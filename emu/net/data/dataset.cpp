// Splits and normalisation.
#include "emu/net/data/dataset.hpp"

#include <fmt/format.h>

#include <atomic>
#include <numeric>
#include <utility>

#include "formats/digest.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kLevels = 256;

void check(const std::string& name, std::string_view split, const Images& images,
           std::int64_t least) {
  if (images.count < least) {
    throw Error(fmt::format("{}: expected at least {} {} images, found {}", name, least, split,
                            images.count));
  }
  const std::int64_t pixels =
      element_count({images.count, images.height, images.width, images.channels});
  if (std::cmp_not_equal(images.pixels.size(), pixels) ||
      std::cmp_not_equal(images.labels.size(), images.count)) {
    throw Error(fmt::format("{}: expected {} {} pixels and {} labels, found {} and {}", name,
                            pixels, split, images.count, images.pixels.size(),
                            images.labels.size()));
  }
}

}  // namespace

Dataset::Dataset(std::string name, std::int64_t classes, Images train, Images test,
                 const std::vector<double>& mean, const std::vector<double>& deviation)
    : name_(std::move(name)), classes_(classes), train_(std::move(train)), test_(std::move(test)) {
  check(name_, "training", train_, kValidation + kCalibration);
  check(name_, "test", test_, 1);
  if (test_.height != train_.height || test_.width != train_.width ||
      test_.channels != train_.channels) {
    throw Error(name_ + ": expected training and test images of the same extents");
  }
  if (std::cmp_not_equal(mean.size(), train_.channels) || deviation.size() != mean.size()) {
    throw Error(
        fmt::format("{}: expected mean and deviation of {} channels", name_, train_.channels));
  }
  for (std::size_t channel = 0; channel < mean.size(); ++channel) {
    for (std::int64_t level = 0; level < kLevels; ++level) {
      const double x = (static_cast<double>(level) / 255.0 - mean[channel]) / deviation[channel];
      table_.push_back(static_cast<float>(x));
    }
  }
  std::string digests;
  for (const std::vector<std::uint8_t>* bytes :
       {&train_.pixels, &train_.labels, &test_.pixels, &test_.labels}) {
    digests += sha256_hex({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  }
  digest_ = sha256_hex(digests).substr(0, 16);
}

Tensor Dataset::batch(const Images& images, const std::vector<std::int64_t>& ids,
                      std::vector<std::uint8_t>& labels) const {
  Tensor out({static_cast<std::int64_t>(ids.size()), images.height, images.width, images.channels});
  const std::int64_t size = images.height * images.width * images.channels;
  labels.resize(ids.size());
  float* to = out.data.data();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    labels[i] = images.labels[ids[i]];
    const std::uint8_t* from = images.pixels.data() + ids[i] * size;
    for (std::int64_t p = 0, channel = 0; p < size; ++p) {
      *to++ = table_[channel * kLevels + from[p]];
      if (++channel == images.channels) channel = 0;
    }
  }
  return out;
}

std::vector<std::int64_t> Dataset::run_of(std::string_view split, std::int64_t size,
                                          std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > size || count > size - first) {
    throw Error(fmt::format("{}: expected a range of the {} {} images, found {} from {}", name_,
                            size, split, count, first));
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

Tensor Dataset::train_batch(const std::vector<std::int64_t>& ids,
                            std::vector<std::uint8_t>& labels) const {
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= train_count()) {
      throw Error(fmt::format("{}: expected training images 0..{}, found {}", name_,
                              train_count() - 1, id));
    }
  }
  return batch(train_, ids, labels);
}

Tensor Dataset::validation_batch(std::int64_t first, std::int64_t count,
                                 std::vector<std::uint8_t>& labels) const {
  std::vector<std::int64_t> ids = run_of("validation", kValidation, first, count);
  for (std::int64_t& id : ids) id += train_count();
  return batch(train_, ids, labels);
}

Tensor Dataset::calibration_batch(std::int64_t first, std::int64_t count,
                                  std::vector<std::uint8_t>& labels) const {
  return batch(train_, run_of("calibration", kCalibration, first, count), labels);
}

Tensor Dataset::test_batch(std::int64_t first, std::int64_t count,
                           std::vector<std::uint8_t>& labels) const {
  std::atomic_ref(test_reads_).fetch_add(1, std::memory_order_relaxed);
  return batch(test_, run_of("test", test_.count, first, count), labels);
}

}  // namespace numemu::net

// cifar10:DIR: batches of 10,000 records of one label byte and three 32 x 32 planes; cifar100:DIR:
// one file for each split, with a coarse label before the fine one.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "emu/net/data/byte_source.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "emu/net/memory.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Per channel (red, green, blue) on [0, 1]: the ImageNet constants that
// akamaster/pytorch_resnet_cifar10 trained with.
constexpr double kMean[] = {0.485, 0.456, 0.406}, kDeviation[] = {0.229, 0.224, 0.225};

constexpr std::int64_t kRecords = 10'000, kSide = 32, kPlane = kSide * kSide, kChannels = 3;
constexpr int kTrainBatches = 5;

/// What a record is: its last label byte counts.
struct Layout {
  std::int64_t records;  ///< of a file
  std::int64_t labels;   ///< bytes
  int classes;
  std::int64_t record() const { return labels + kChannels * kPlane; }
};
constexpr Layout kTen{kRecords, 1, 10}, kHundredTrain{50'000, 2, 100},
    kHundredTest{kRecords, 2, 100};

/// The file's path, "" if there is none.
std::string find_batch(const std::string& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const std::string path = folder + "/" + name + ending;
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

using Sources = std::vector<std::unique_ptr<ByteSource>>;

/// All batches in order, planes interleaved to [height, width, channel]. Memory is taken once, when
/// every file may hold what it must.
Images read_batches(const Sources& sources, const Layout& layout) {
  Images images{0, kSide, kSide, kChannels, {}, {}};
  const std::string what = fmt::format("{} records of {}", layout.records, layout.record());
  for (const auto& source : sources) source->require(layout.records * layout.record(), what);
  images.count = layout.records * static_cast<std::int64_t>(sources.size());
  require_beside_held(images.count * layout.record(), sources.front()->path());
  images.pixels.resize(static_cast<std::size_t>(images.count * kPlane * kChannels));
  std::uint8_t* pixel = images.pixels.data();
  for (const auto& source : sources) {
    for (std::int64_t i = 0; i < layout.records; ++i) {
      const std::vector<std::uint8_t> record = source->read(layout.record(), "a record");
      const std::uint8_t label = record[layout.labels - 1];
      source->expect_label(i * layout.record() + layout.labels - 1, label, layout.classes);
      images.labels.push_back(label);
      // Local pointers: a store through a pointer to bytes may change any object, so the compiler
      // would reload members for each pixel.
      const std::uint8_t* const planes = record.data() + layout.labels;
      std::uint8_t* to = pixel;
      for (std::int64_t p = 0; p < kPlane; ++p) {
        for (std::int64_t c = 0; c < kChannels; ++c) *to++ = planes[c * kPlane + p];
      }
      pixel = to;
    }
    source->expect_end();
  }
  return images;
}

}  // namespace

Dataset load_cifar10(const std::string& folder) {
  Sources train, test;
  for (int batch = 1; batch <= kTrainBatches; ++batch) {
    const std::string path = find_batch(folder, fmt::format("data_batch_{}.bin", batch));
    if (!path.empty()) train.push_back(std::make_unique<ByteSource>(path));
  }
  if (train.empty()) {
    throw Error(folder +
                ": expected at least one of data_batch_1.bin to data_batch_5.bin, plain or .gz, "
                "found none");
  }
  const std::string path = find_batch(folder, "test_batch.bin");
  if (path.empty())
    throw Error(folder + ": expected a file test_batch.bin, plain or .gz, found none");
  test.push_back(std::make_unique<ByteSource>(path));
  Images train_images = read_batches(train, kTen);
  Images test_images = read_batches(test, kTen);
  return Dataset("cifar10", kTen.classes, std::move(train_images), std::move(test_images),
                 {kMean, kMean + kChannels}, {kDeviation, kDeviation + kChannels});
}

Dataset load_cifar100(const std::string& folder) {
  const auto read = [&](const char* name, const Layout& layout) {
    const std::string path = find_batch(folder, name);
    if (path.empty())
      throw Error(fmt::format("{}: expected a file {}, plain or .gz, found none", folder, name));
    Sources sources;
    sources.push_back(std::make_unique<ByteSource>(path));
    return read_batches(sources, layout);
  };
  Images train = read("train.bin", kHundredTrain), test = read("test.bin", kHundredTest);
  return Dataset("cifar100", kHundredTest.classes, std::move(train), std::move(test),
                 {kMean, kMean + kChannels}, {kDeviation, kDeviation + kChannels});
}

}  // namespace numemu::net

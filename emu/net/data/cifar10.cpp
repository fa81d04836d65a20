// cifar10:DIR: batches of 10,000 records of one label byte and three 32 x 32 planes.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "emu/net/data/byte_source.hpp"
#include "emu/net/data/sources.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Per channel (red, green, blue) on [0, 1]: the ImageNet constants that
// akamaster/pytorch_resnet_cifar10 trained with.
constexpr double kMean[] = {0.485, 0.456, 0.406}, kDeviation[] = {0.229, 0.224, 0.225};

constexpr std::int64_t kRecords = 10'000, kSide = 32, kPlane = kSide * kSide, kChannels = 3;
constexpr std::int64_t kRecord = 1 + kChannels * kPlane;
constexpr int kClasses = 10, kTrainBatches = 5;

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
Images read_batches(const Sources& sources) {
  Images images{0, kSide, kSide, kChannels, {}, {}};
  for (const auto& source : sources) source->require(kRecords * kRecord, "10000 records of 3073");
  images.count = kRecords * static_cast<std::int64_t>(sources.size());
  images.pixels.resize(static_cast<std::size_t>(images.count * kPlane * kChannels));
  std::uint8_t* pixel = images.pixels.data();
  for (const auto& source : sources) {
    for (std::int64_t i = 0; i < kRecords; ++i) {
      const std::vector<std::uint8_t> record = source->read(kRecord, "a record");
      source->expect_label(i * kRecord, record[0], kClasses);
      images.labels.push_back(record[0]);
      for (std::int64_t p = 0; p < kPlane; ++p) {
        for (std::int64_t c = 0; c < kChannels; ++c) *pixel++ = record[1 + c * kPlane + p];
      }
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
  Images train_images = read_batches(train);
  Images test_images = read_batches(test);
  return Dataset("cifar10", kClasses, std::move(train_images), std::move(test_images),
                 {kMean, kMean + kChannels}, {kDeviation, kDeviation + kChannels});
}

}  // namespace numemu::net

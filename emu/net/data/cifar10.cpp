// cifar10:DIR: batches of 10,000 records of one label byte and three 32 x 32 planes.
#include <fmt/format.h>

#include <filesystem>

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

/// Appends a batch, planes interleaved to [height, width, channel].
void append_batch(const std::string& path, Images& images) {
  ByteSource source(path);
  const std::vector<std::uint8_t> bytes = source.read(kRecords * kRecord, "10000 records of 3073");
  source.expect_end();
  const std::size_t start = images.pixels.size();
  images.pixels.resize(start + kRecords * kPlane * kChannels);
  std::uint8_t* pixel = images.pixels.data() + start;
  for (std::int64_t i = 0; i < kRecords; ++i) {
    const std::uint8_t* record = bytes.data() + i * kRecord;
    source.expect_label(i * kRecord, record[0], kClasses);
    images.labels.push_back(record[0]);
    for (std::int64_t p = 0; p < kPlane; ++p) {
      for (std::int64_t c = 0; c < kChannels; ++c) *pixel++ = record[1 + c * kPlane + p];
    }
  }
  images.count += kRecords;
}

}  // namespace

Dataset load_cifar10(const std::string& folder) {
  Images train{0, kSide, kSide, kChannels, {}, {}}, test = train;
  for (int batch = 1; batch <= kTrainBatches; ++batch) {
    const std::string path = find_batch(folder, fmt::format("data_batch_{}.bin", batch));
    if (!path.empty()) append_batch(path, train);
  }
  if (train.count == 0) {
    throw Error(folder +
                ": expected at least one of data_batch_1.bin to data_batch_5.bin, plain or .gz, "
                "found none");
  }
  const std::string path = find_batch(folder, "test_batch.bin");
  if (path.empty())
    throw Error(folder + ": expected a file test_batch.bin, plain or .gz, found none");
  append_batch(path, test);
  return Dataset("cifar10", kClasses, std::move(train), std::move(test),
                 {kMean, kMean + kChannels}, {kDeviation, kDeviation + kChannels});
}

}  // namespace numemu::net

// Runs one of the fuzz targets without a fuzzer: every file of a corpus folder, then mutations of
// them that are the same in every run. Files named good* must load, files named bad* must be
// refused.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/files.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

constexpr std::size_t kLongest = 1 << 16;

/// splitmix64 (Steele, Lea and Flood, 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t word() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : word() % n; }

 private:
  std::uint64_t state_;
};

/// Numbers on which sizes and signs go wrong.
constexpr std::uint64_t kEdges[] = {0,
                                    1,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0xffff,
                                    0x7fff'ffff,
                                    0x8000'0000,
                                    0xffff'ffff,
                                    0x7fff'ffff'ffff'ffff,
                                    0x8000'0000'0000'0000,
                                    0xffff'ffff'ffff'ffff};

void mutate(std::string& bytes, const std::string& other, Random& random) {
  const std::size_t at = random.below(bytes.size() + 1);
  const std::size_t length = std::min(random.below(32) + 1, bytes.size() - at);
  switch (random.below(8)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random.word());
      break;
    case 2: {  // a number of 1, 2, 4 or 8 bytes, either end first
      std::uint64_t edge = kEdges[random.below(std::size(kEdges))];
      const std::size_t width = std::size_t{1} << random.below(4);
      if (random.below(2) == 1) edge = __builtin_bswap64(edge) >> (64 - 8 * width);
      for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<char>(edge >> 8 * i);
      break;
    }
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(random.below(bytes.size() + 1), bytes.substr(at, length));
      break;
    case 5: {  // one part very often
      const std::string part = bytes.substr(at, length);
      for (std::size_t i = random.below(512); i > 0 && bytes.size() < kLongest; --i)
        bytes.insert(at, part);
      break;
    }
    case 6:
      bytes.resize(at);
      break;
    default:
      bytes = bytes.substr(0, at) + other.substr(random.below(other.size() + 1));
      break;
  }
  if (bytes.size() > kLongest) bytes.resize(kLongest);
}

const numemu::fuzz::Target* target_named(std::string_view name) {
  const numemu::fuzz::Target* target = numemu::fuzz::first_target;
  while (target != nullptr && target->name != name) target = target->next;
  return target;
}

bool load(const numemu::fuzz::Target& target, const std::string& bytes) {
  target.entry(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return numemu::fuzz::loaded;
}

std::string current;

void stop() {
  std::fprintf(stderr, "in %s\n", current.c_str());
  std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  const numemu::fuzz::Target* target = count == 4 ? target_named(arguments[1]) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "expected TARGET CORPUS_FOLDER MUTATIONS_OF_EACH_FILE\n");
    return 2;
  }
  numemu::fuzz::finding = stop;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[2]))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const auto& file : files) {
    current = file.filename();
    inputs.push_back(numemu::test::read_file(file));
    const bool loaded = load(*target, inputs.back());
    if (loaded != current.starts_with("good") || loaded == current.starts_with("bad")) {
      std::fprintf(stderr, "%s: %s\n", file.c_str(), loaded ? "loads" : "is refused");
      return 1;
    }
  }
  const int mutations = std::atoi(arguments[3]);
  std::size_t loaded = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Random random(i);
    for (int m = 0; m < mutations; ++m) {
      current = files[i].filename().string() + ", mutation " + std::to_string(m);
      std::string bytes = inputs[i];
      for (std::size_t n = random.below(4) + 1; n > 0; --n)
        mutate(bytes, inputs[random.below(inputs.size())], random);
      loaded += load(*target, bytes);
    }
  }
  std::printf("%zu files, %zu mutations, of which %zu load\n", files.size(),
              inputs.size() * static_cast<std::size_t>(mutations), loaded);
  return files.empty() || mutations < 1 ? 1 : 0;
}

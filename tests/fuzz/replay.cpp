// Runs one of the fuzz targets without a fuzzer: every file of a corpus folder, then mutations of
// them that are the same in every run. Files named good* must load, files named bad* must be
// refused.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/files.hpp"
#include "tests/fuzz/harness.hpp"
#include "tests/fuzz/mutate.hpp"

namespace {

const numemu::fuzz::Target* target_named(std::string_view name) {
  const numemu::fuzz::Target* target = numemu::fuzz::first_target;
  while (target != nullptr && target->name != name) target = target->next;
  return target;
}

std::string current, input;

bool load(const numemu::fuzz::Target& target, const std::string& bytes) {
  input = bytes;
  target.entry(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return numemu::fuzz::loaded;
}

constexpr int kMostFindings = 10;
int findings = 0;

/// Keeps the input that shows a fault.
void keep() {
  const std::filesystem::path kept =
      std::filesystem::temp_directory_path() /
      ("numemu-finding-" + std::to_string(getpid()) + "-" + std::to_string(findings));
  std::ofstream(kept, std::ios::binary) << input;
  std::fprintf(stderr, "in %s, kept as %s\n", current.c_str(), kept.c_str());
  if (++findings == kMostFindings) std::exit(1);
}

/// The input of a fault that ends the program; a sanitizer tells of it itself.
void keep_at_faults() {
#ifndef __SANITIZE_ADDRESS__
  static char stack[1 << 16];
  const stack_t other{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    keep();
    std::_Exit(1);
  };
  action.sa_flags = SA_ONSTACK;
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) sigaction(fault, &action, nullptr);
#endif
}

}  // namespace

int main(int count, char** arguments) {
  const numemu::fuzz::Target* target = count == 4 ? target_named(arguments[1]) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "expected TARGET CORPUS_FOLDER MUTATIONS_OF_EACH_FILE\n");
    return 2;
  }
  numemu::fuzz::finding = keep;
  keep_at_faults();
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
    numemu::fuzz::Random random(i);
    for (int m = 0; m < mutations; ++m) {
      current = files[i].filename().string() + ", mutation " + std::to_string(m);
      std::string bytes = inputs[i];
      for (std::size_t n = random.below(4) + 1; n > 0; --n)
        target->mutate(bytes, random.of(inputs), random);
      loaded += load(*target, bytes);
    }
  }
  std::printf("%zu files, %zu mutations, of which %zu load\n", files.size(),
              inputs.size() * static_cast<std::size_t>(mutations), loaded);
  return files.empty() || mutations < 1 || findings > 0 ? 1 : 0;
}

// The program: asks the GPU in hand every instruction and conversion it has, and writes the answers
// to a folder.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/recording/whole_file.hpp"
#include "tests/oracle/cuda/ask/ask_all.hpp"
#include "tests/oracle/cuda/ask/chips.hpp"
#include "tests/oracle/cuda/ask/supervise.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"
#include "tests/oracle/cuda/device/gpu_machine.cuh"

namespace numemu::oracle::recording {
namespace {

constexpr int kNoGpu = 77;  // what test harnesses read as skipped
constexpr const char* kGpuColumns = "name\tcapability\tdriver\truntime";

std::string table_of(const GpuIdentity& gpu) {
  return std::string(kGpuColumns) + "\n" +
         table_line({gpu.name, std::to_string(gpu.capability), std::to_string(gpu.driver),
                     std::to_string(gpu.runtime)});
}

[[noreturn]] void usage() {
  std::fprintf(
      stderr,
      "usage: ask OUT [--seed S] [--only TEXT]\n"
      "asks the GPU in hand every instruction and conversion whose kind and name hold TEXT\n");
  std::exit(2);
}

AskAllOptions parse(int count, char** words) {
  AskAllOptions options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool valued = word == "--seed" || word == "--only";
    if (valued && i + 1 == count) usage();
    if (word == "--seed") {
      char* end = nullptr;
      options.seed = std::strtoull(words[++i], &end, 10);
      if (*end != 0 || end == words[i]) usage();
    } else if (word == "--only") {
      options.only = words[++i];
    } else if (!word.empty() && word[0] != '-' && options.out.empty()) {
      options.out = word;
    } else {
      usage();
    }
  }
  if (options.out.empty()) usage();
  options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return options;
}

/// The GPU's words for itself. A child process asks: one that has used CUDA must not fork.
GpuIdentity identify(const AskAllOptions& options) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("numemu-gpu-" + std::to_string(getpid())))
          .string();
  std::string fault;
  const auto ask_it = [&file](int) { write_whole_file(file, table_of(gpu_identity())); };
  supervise(1, options.patience_s, ask_it,
            [&fault](const Outcome& outcome) { fault = outcome.message; });
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    std::exit(kNoGpu);
  }
  const std::vector<std::string> cells = read_table(file, kGpuColumns).front();
  std::filesystem::remove(file);
  return {cells[0], std::stoi(cells[1]), std::stoi(cells[2]), std::stoi(cells[3])};
}

/// The hash of the running program.
std::string program_hash() {
  const std::string bytes = read_whole_file("/proc/self/exe");
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(fnv1a(kFnvBasis, first, bytes.size())));
  return text;
}

std::string release(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Respondent respondent(const GpuIdentity& gpu) {
  Respondent who;
  who.unit = chip_of(gpu.name, gpu.capability);
  who.source = gpu.name + ", driver of CUDA " + release(gpu.driver) + ", built with CUDA " +
               release(gpu.runtime);
  who.table = table_of(gpu);
  for (const Kernel& kernel : kernels()) {
    const Instruction& i = kernel.instruction;
    if (has(i, gpu.capability)) who.instructions.push_back(find_instruction(name(i.kind), name(i)));
  }
  std::vector<ConversionKernel> conversions;
  add_conversions(conversions);
  for (const ConversionKernel& kernel : conversions)
    if (has(kernel.conversion, gpu.capability))
      who.conversions.push_back(find_conversion(kernel.conversion.name));
  who.machine = gpu_machine;
  who.converter = gpu_converter();
  return who;
}

int run(AskAllOptions options) {
  const Respondent who = respondent(identify(options));
  options.program = program_hash();
  std::printf("%s: %zu instructions, %zu conversions, seed %llu\n", who.source.c_str(),
              who.instructions.size(), who.conversions.size(),
              static_cast<unsigned long long>(options.seed));
  const auto say = [](const std::string& line) {
    std::puts(line.c_str());
    std::fflush(stdout);
  };
  return ask_all(who, options, say) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace numemu::oracle::recording

int main(int count, char** words) {
  try {
    return numemu::oracle::recording::run(numemu::oracle::recording::parse(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

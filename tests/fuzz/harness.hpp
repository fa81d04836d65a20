// Shared by all fuzz targets: the input becomes a file; the loader must load it or throw
// numemu::Error within its memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tests/fuzz/mutate.hpp"

namespace numemu::fuzz {

using Entry = int (*)(const std::uint8_t* data, std::size_t size);

/// A target of the replay, which has all of them in a list.
struct Target {
  std::string_view name;
  Entry entry;
  Mutate mutate;
  const Target* next;
  Target(std::string_view target, Entry called, Mutate changed);
};
extern const Target* first_target;

/// What a loader may have allocated at any time: 64 bytes for one of the input and `allowance`. The
/// promise is 16 MiB; loaders that inflate nothing are held to less, because most inputs are too
/// small for 64 times their size to matter beside 16 MiB.
inline constexpr std::int64_t kExpansion = 64;
inline constexpr std::int64_t kPromised = 16 << 20, kTight = 4 << 20;

/// A file in memory that loaders open by its path.
class InputFile {
 public:
  InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();
  void write(std::string_view bytes);
  const std::string& path() const { return path_; }

 private:
  int file_;
  std::string path_;
};

/// The input as text.
std::string_view text_of(const std::uint8_t* data, std::size_t size);

/// Runs `load`; true where it loads, false where it throws Error. Anything else (another exception,
/// an Error of several lines, more memory than 64 * size + allowance) is reported by `finding`.
bool run(std::size_t size, std::int64_t allowance, const std::function<void()>& load);

/// Set by run(): whether the last input loaded, and the most bytes that were allocated
/// at a time.
extern bool loaded;
extern std::int64_t taken;
/// Called for a finding; std::abort, which a fuzzer recognises, unless replaced.
extern void (*finding)();

}  // namespace numemu::fuzz

/// Begins the function of the target `name`: libFuzzer's entry in a program of its own, one of the
/// replay's targets otherwise. An ONNX target has its inputs changed by mutate_onnx(), for
/// libFuzzer too, whose own changes then are one in eight.
#ifdef NUMEMU_LIBFUZZER
#define NUMEMU_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#define NUMEMU_FUZZ_ONNX_TARGET(name)                                                            \
  extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t, std::size_t);              \
  extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,           \
                                                 std::size_t most, unsigned seed) {              \
    if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, most);                                \
    return numemu::fuzz::mutated_onnx({data, size}, {data, size}, {data, most}, seed);           \
  }                                                                                              \
  extern "C" std::size_t LLVMFuzzerCustomCrossOver(                                              \
      const std::uint8_t* data, std::size_t size, const std::uint8_t* other, std::size_t length, \
      std::uint8_t* out, std::size_t most, unsigned seed) {                                      \
    return numemu::fuzz::mutated_onnx({data, size}, {other, length}, {out, most}, seed);         \
  }                                                                                              \
  NUMEMU_FUZZ_TARGET(name)
#else
#define NUMEMU_FUZZ_TARGET(name) NUMEMU_FUZZ_REPLAYED(name, numemu::fuzz::mutate_bytes)
#define NUMEMU_FUZZ_ONNX_TARGET(name) NUMEMU_FUZZ_REPLAYED(name, numemu::fuzz::mutate_onnx)
#define NUMEMU_FUZZ_REPLAYED(name, mutate)                                      \
  static int name##_entry(const std::uint8_t* data, std::size_t size);          \
  static const numemu::fuzz::Target name##_target(#name, name##_entry, mutate); \
  static int name##_entry
#endif

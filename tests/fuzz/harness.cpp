// Memory in use is counted by the sanitizer's hooks where there is one, else by replacing operator
// new and aligned_alloc.
#include "tests/fuzz/harness.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "formats/error.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define NUMEMU_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NUMEMU_ADDRESS_SANITIZER 1
#endif
#endif

namespace {

std::atomic<std::int64_t> live{0}, peak{0};

void count(std::size_t size) {
  const std::int64_t now = live += static_cast<std::int64_t>(size);
  for (std::int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
}
void discount(std::size_t size) { live -= static_cast<std::int64_t>(size); }

}  // namespace

#ifdef NUMEMU_ADDRESS_SANITIZER

#include <sanitizer/allocator_interface.h>

namespace {

void on_malloc(const volatile void*, std::size_t size) { count(size); }
void on_free(const volatile void* memory) {
  if (memory != nullptr) discount(__sanitizer_get_allocated_size(memory));
}
const int kInstalled = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);

}  // namespace

#else

void* operator new(std::size_t size) {
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  count(malloc_usable_size(memory));
  return memory;
}
void operator delete(void* memory) noexcept {
  discount(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

// The arrays of formats/storage take their memory here and give it back to free, which is not
// replaced: they count as if they stayed.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count(size);
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

#endif

namespace numemu::fuzz {

bool loaded = false;
std::int64_t taken = 0;
void (*finding)() = std::abort;
const Target* first_target = nullptr;
Target::Target(std::string_view target, Entry called, Mutate changed)
    : name(target), entry(called), mutate(changed), next(first_target) {
  first_target = this;
}

namespace {

void report(const std::string& text) {
  std::fprintf(stderr, "finding: %s\n", text.c_str());
  std::fflush(stderr);
  finding();
}

}  // namespace

InputFile::InputFile() : file_(memfd_create("input", MFD_CLOEXEC)) {
  if (file_ < 0) {
    std::perror("memfd_create");
    std::abort();
  }
  path_ = "/proc/self/fd/" + std::to_string(file_);
}

InputFile::~InputFile() { close(file_); }

void InputFile::write(std::string_view bytes) {
  const bool done = ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) ==
                                                    static_cast<ssize_t>(bytes.size());
  if (!done) {
    std::perror("memfd");
    std::abort();
  }
}

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

bool run(std::size_t size, std::int64_t allowance, const std::function<void()>& load) {
  const std::int64_t before = live;
  const std::int64_t most = kExpansion * static_cast<std::int64_t>(size) + allowance;
  peak = before;
  std::string trouble;
  loaded = false;
  try {
    load();
    loaded = true;
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos)
      trouble = std::string("an Error of several lines: ") + error.what();
  } catch (const std::exception& error) {
    trouble = std::string("neither loaded nor refused by an Error: ") + error.what();
  } catch (...) {
    trouble = "neither loaded nor refused by an Error";
  }
  taken = peak - before;
  if (taken > most) {
    trouble += (trouble.empty() ? "" : "; ") + std::to_string(taken) + " bytes allocated for " +
               std::to_string(size) + " of input, at most " + std::to_string(most) + " expected";
  }
  if (!trouble.empty()) report(trouble);
  return loaded;
}

}  // namespace numemu::fuzz

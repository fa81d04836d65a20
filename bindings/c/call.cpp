#include "bindings/c/call.hpp"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>

#include "formats/storage/utf8.hpp"

namespace numemu::c {
namespace {

constexpr std::size_t kLongestMessage = 4096;
thread_local char message[kLongestMessage];

/// UTF-8; cut between characters where it is too long.
void set_message(std::string_view text) noexcept {
  std::size_t length = std::min(text.size(), kLongestMessage - 1);
  const auto continues = [&](std::size_t i) { return (text[i] & 0xc0) == 0x80; };
  while (length > 0 && length < text.size() && continues(length)) --length;
  std::memcpy(message, text.data(), length);
  message[length] = 0;
}

numemu_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return NUMEMU_USAGE;
    case ErrorKind::file:
      return NUMEMU_FILE;
    case ErrorKind::value:
      return NUMEMU_VALUE;
    case ErrorKind::memory:
      return NUMEMU_MEMORY;
    case ErrorKind::internal:
      break;
  }
  return NUMEMU_INTERNAL;
}

}  // namespace

numemu_status failed() noexcept {
  try {
    const Error error = error_of(std::current_exception());
    set_message(utf8_text(error.what()));
    return status_of(error.kind());
  } catch (...) {
    set_message("out of memory");
    return NUMEMU_MEMORY;
  }
}

void give_text(std::string_view own, char* text, std::size_t room, std::size_t* length) {
  if (length != nullptr) *length = own.size();
  if (text == nullptr || room == 0) return;
  const std::size_t kept = std::min(own.size(), room - 1);
  std::memcpy(text, own.data(), kept);
  text[kept] = 0;
}

void require_within(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return;
  throw usage_error(std::string(name) + ": expected " + std::to_string(low) + " to " +
                    std::to_string(high) + ", found " + std::to_string(value));
}

}  // namespace numemu::c

const char* numemu_version(void) { return NUMEMU_VERSION; }

const char* numemu_message(void) { return numemu::c::message; }

numemu_status numemu_set_threads(int32_t most) {
  return numemu::c::call([&] {
    numemu::c::require_within("most", most, 0, INT32_MAX);
    // More than there are processors might not start, which ends the program.
    const int all = omp_get_num_procs();
    omp_set_num_threads(most == 0 ? all : std::min(most, all));
  });
}

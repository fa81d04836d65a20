// The border of the C library: exceptions become codes and messages, structures of other versions
// are read and filled, texts are cut to their room.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bindings/c/numemu.h"
#include "formats/error.hpp"

namespace numemu::c {

/// The code of the exception in flight; its text becomes the thread's message. Allocates nothing.
numemu_status failed() noexcept;

/// Runs the body of a function of the library.
template <class Body>
numemu_status call(const Body& body) noexcept {
  try {
    body();
    return NUMEMU_OK;
  } catch (...) {
    return failed();
  }
}

/// What a pointer of the caller points to. Throws Error where it is NULL.
template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw usage_error(std::string(name) + ": expected a pointer, found NULL");
  return *pointer;
}

/// A structure of the caller, whose version may have fewer or more members at the end; one that is
/// NULL has all its members 0.
template <class T>
T taken(const T* from, const char* name) {
  T own = {};
  if (from == nullptr) return own;
  if (from->size < sizeof(std::size_t))
    throw usage_error(std::string(name) + ": size: expected sizeof the structure, found " +
                      std::to_string(from->size));
  std::memcpy(&own, from, std::min(from->size, sizeof own));
  return own;
}

/// Fills a structure of the caller as far as it goes, but for its size.
template <class T>
void give(const T& own, T* to, const char* name) {
  const std::size_t size = taken(&required(to, name), name).size;
  const std::size_t end = std::min(size, sizeof own);
  if (end > sizeof size)
    std::memcpy(reinterpret_cast<char*>(to) + sizeof size,
                reinterpret_cast<const char*>(&own) + sizeof size, end - sizeof size);
}

void give_text(std::string_view own, char* text, std::size_t room, std::size_t* length);

/// "" for NULL.
inline std::string text_of(const char* text) { return text == nullptr ? "" : text; }

/// Throws Error unless low <= value <= high.
void require_within(const char* name, std::int64_t value, std::int64_t low, std::int64_t high);

}  // namespace numemu::c

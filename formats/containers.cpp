#include "formats/containers.hpp"

#include <fmt/format.h>

#include "formats/error.hpp"

namespace numemu {
namespace {

std::uint64_t load_container(int bytes, const void* codes, std::int64_t i) {
  switch (bytes) {
    case 1:
      return static_cast<const std::uint8_t*>(codes)[i];
    case 2:
      return static_cast<const std::uint16_t*>(codes)[i];
    case 4:
      return static_cast<const std::uint32_t*>(codes)[i];
    default:
      return static_cast<const std::uint64_t*>(codes)[i];
  }
}

}  // namespace

int container_bytes(const Format& f) {
  const int bits = f.bits + f.container_shift;
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

std::uint64_t load_code(const Format& f, const void* codes, std::int64_t i) {
  return load_container(container_bytes(f), codes, i) >> f.container_shift;
}

std::uint64_t checked_code(const Format& f, const void* codes, std::int64_t i) {
  const std::uint64_t container = load_container(container_bytes(f), codes, i);
  const std::uint64_t code = container >> f.container_shift;
  if (code > f.last_code() || code << f.container_shift != container)
    throw Error(fmt::format("element {}: {:#x} is not a code of {}", i, container, f.name));
  return code;
}

void store_code(const Format& f, void* codes, std::int64_t i, std::uint64_t code) {
  code <<= f.container_shift;
  switch (container_bytes(f)) {
    case 1:
      static_cast<std::uint8_t*>(codes)[i] = static_cast<std::uint8_t>(code);
      break;
    case 2:
      static_cast<std::uint16_t*>(codes)[i] = static_cast<std::uint16_t>(code);
      break;
    case 4:
      static_cast<std::uint32_t*>(codes)[i] = static_cast<std::uint32_t>(code);
      break;
    default:
      static_cast<std::uint64_t*>(codes)[i] = code;
  }
}

}  // namespace numemu

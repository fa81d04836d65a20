// The JSON header of a safetensors file, checked against the bytes that follow it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/stored_type.hpp"

namespace numemu::net {

/// Longest header accepted, as in the reference implementation.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

/// One tensor of the file; its bytes are begin .. end-1 counted from the end of the header.
struct HeaderEntry {
  std::string name;
  const StoredType* type = nullptr;
  Shape shape;
  std::int64_t elements = 0, begin = 0, end = 0;
};

struct Header {
  std::vector<HeaderEntry> entries;  ///< in file order: they cover the data without hole or overlap
  std::vector<std::pair<std::string, std::string>> metadata;  ///< sorted by key
};

/// Parses the text between the length and the data. Throws Error naming `path`, the tensor and the
/// key.
Header parse_header(const std::string& path, std::string_view text, std::int64_t data_bytes);

/// The text of a header, padded with spaces so that the data start at a multiple of 8 bytes.
/// Throws Error naming `path` where a name is not UTF-8.
std::string format_header(const std::string& path, const Header&);

/// A name in quotes for a one-line message: escaped, and cut when it is long.
std::string quote_name(std::string_view name);

}  // namespace numemu::net

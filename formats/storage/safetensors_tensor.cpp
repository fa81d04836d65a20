// The header is checked whole; of the data only the chosen tensor is read.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/safetensors_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

const SafetensorsEntry& chosen(const std::string& path, const SafetensorsHeader& header,
                               const std::string& name) {
  if (name.empty() && header.entries.size() == 1) return header.entries.front();
  if (name.empty()) {
    throw Error(fmt::format("{}: expected one tensor or --tensor NAME, found {} tensors", path,
                            header.entries.size()));
  }
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw Error(fmt::format("{}: no tensor {}{}", path, quote_name(name),
                          nearest.empty() ? "" : "; did you mean " + quote_name(nearest) + "?"));
}

}  // namespace

bool is_safetensors(std::string_view path) {
  constexpr std::string_view kSuffix = ".safetensors";
  if (path.size() < kSuffix.size()) return false;
  const std::string_view end = path.substr(path.size() - kSuffix.size());
  // Not by the locale: only the letters of ASCII have two cases here.
  return std::equal(end.begin(), end.end(), kSuffix.begin(), [](char c, char expected) {
    return (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) == expected;
  });
}

StoredTensor read_safetensors_tensor(InputFile& file, const std::string& name) {
  const SafetensorsHeader header = read_safetensors_header(file);
  const SafetensorsEntry& entry = chosen(file.path(), header, name);
  StoredTensor tensor{entry.name, entry.type, entry.shape, entry.elements,
                      Bytes(entry.end - entry.begin)};
  file.skip(entry.begin);
  file.read(tensor.data.data(), tensor.data.size());
  return tensor;
}

PendingFile pending_safetensors_tensor(const std::string& path, const std::string& name,
                                       const SafetensorsType& type, const ArrayShape& shape,
                                       const void* data) {
  const std::int64_t elements = element_count_of(shape).value();
  if (elements % 8 * type.bits % 8 != 0) {
    throw Error(fmt::format("{}: shape: expected a whole number of bytes, found {} of {} ({})",
                            path, counted(elements, "element"), counted(type.bits, "bit"),
                            type.name));
  }
  const std::int64_t bytes = elements / 8 * type.bits + elements % 8 * type.bits / 8;
  SafetensorsHeader header;
  header.entries.push_back({name, &type, shape, elements, 0, bytes});
  return {path,
          {format_safetensors_header(path, header),
           {static_cast<const char*>(data), static_cast<std::size_t>(bytes)}}};
}

}  // namespace numemu

// Reading and writing checkpoints: the length, the header, the tensors in file order.
#include "emu/net/model/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emu/net/data/stored_type.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/profile.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {
namespace {

const std::vector<std::string_view> kAccepted = {"F32", "F16", "BF16"};
const std::vector<std::string_view> kWithBytes = {"F32", "F16", "BF16", "U8"};
const std::vector<std::string_view> kWithCodes = {"F32",     "F16",         "BF16",       "U8",
                                                  "I8",      "I16",         "U16",        "F8_E4M3",
                                                  "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"};

/// Elements as little-endian whole numbers.
template <class Whole>
void load_whole(std::string_view bytes, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Whole code;
    std::memcpy(&code, bytes.data() + i * sizeof(Whole), sizeof(Whole));
    values[i] = static_cast<float>(code);
  }
}

void load_codes(const SafetensorsType& type, std::string_view bytes, std::span<float> values) {
  const std::string_view name = type.name;
  if (name == "I8") return load_whole<std::int8_t>(bytes, values);
  if (name == "U8") return load_whole<std::uint8_t>(bytes, values);
  if (name == "I16") return load_whole<std::int16_t>(bytes, values);
  if (name == "U16") return load_whole<std::uint16_t>(bytes, values);
  const float* const table = decode_table(find_format(type.format));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = table[static_cast<unsigned char>(bytes[i])];
}

SafetensorsEntry entry_of(const std::string& path, const NamedTensor& tensor,
                          const StoredType& type, std::int64_t begin) {
  const std::int64_t elements = element_count(tensor.value.shape);
  if (elements != tensor.value.size()) {
    throw Error(fmt::format("{}: tensor {}: expected {} elements of shape {}, found {}", path,
                            quote_name(tensor.name), elements, to_string(tensor.value.shape),
                            tensor.value.size()));
  }
  return {tensor.name, safetensors_type(type.name),  tensor.value.shape, elements,
          begin,       begin + elements * type.bytes};
}

/// The type must be that of the format of codes; without a format it is none that is read.
void require_code_type(const std::string& path, const SafetensorsEntry& entry,
                       const std::string* format) {
  const std::string_view found = entry.type->name;
  std::string expected = "F32, F16, BF16 or U8";
  if (format != nullptr) {
    const std::string_view type = code_type(code_format(path, entry.name, *format));
    if (found == type) return;
    expected = fmt::format("{} for codes of {}", type, *format);
  }
  throw Error(fmt::format("{}: tensor {}: dtype: expected {}, found {}", path,
                          quote_name(entry.name), expected, quote_name(found)));
}

/// Codes or scales of a weight in blocks (coded_blocks.hpp), whose own reader checks them.
bool is_of_blocks(const Checkpoint& checkpoint, std::string_view name) {
  constexpr std::string_view kScales = "_scale";
  if (name.ends_with(kScales)) name.remove_suffix(kScales.size());
  const std::string weight(name);
  return sorted_metadata_of(checkpoint, weight + "_blocks") != nullptr ||
         sorted_metadata_of(checkpoint, weight + "_tiles") != nullptr;
}

void check_unique(const std::string& path, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw Error(
        fmt::format("{}: expected each name once, found {} twice", path, quote_name(*twice)));
}

}  // namespace

void write_safetensors(const std::string& path, const Checkpoint& checkpoint, StorageType storage) {
  const Section section(SectionKind::data, "", "safetensors");
  const StoredType& type = stored_type(storage);
  SafetensorsHeader header{{}, checkpoint.metadata};
  std::sort(header.metadata.begin(), header.metadata.end());
  std::vector<std::string> names = {"__metadata__"}, keys;
  for (const auto& [key, value] : header.metadata) keys.push_back(key);
  std::string data;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    names.push_back(tensor.name);
    header.entries.push_back(entry_of(path, tensor, type, static_cast<std::int64_t>(data.size())));
    const std::int64_t beyond = store(type, tensor.value.data, data);
    if (beyond >= 0) {
      throw Error(fmt::format("{}: tensor {}: element {}: expected a value within {}, found {}",
                              path, quote_name(tensor.name), beyond, type.format,
                              tensor.value.data[beyond]));
    }
  }
  for (const NamedBytes& bytes : checkpoint.bytes) {
    names.push_back(bytes.name);
    const auto begin = static_cast<std::int64_t>(data.size());
    const auto size = static_cast<std::int64_t>(bytes.data.size());
    header.entries.push_back(
        {bytes.name, safetensors_type("U8"), {size}, size, begin, begin + size});
    data += bytes.data;
  }
  check_unique(path, names);
  check_unique(path, keys);
  write_atomically(path, {format_safetensors_header(path, header), data});
}

const std::string* sorted_metadata_of(const Checkpoint& checkpoint, const std::string& key) {
  const auto found = std::ranges::lower_bound(checkpoint.metadata, key, {},
                                              &std::pair<std::string, std::string>::first);
  return found == checkpoint.metadata.end() || found->first != key ? nullptr : &found->second;
}

Checkpoint read_safetensors(const std::string& path, bool bytes, bool codes) {
  return read_safetensors_part(path, bytes, codes, {});
}

Checkpoint read_safetensors_part(const std::string& path, bool with_bytes, bool with_codes,
                                 const std::function<bool(std::string_view)>& wanted) {
  const Section section(SectionKind::data, "", "safetensors");
  InputFile file(path);
  SafetensorsHeader header = read_safetensors_header(file, with_codes   ? kWithCodes
                                                           : with_bytes ? kWithBytes
                                                                        : kAccepted);
  Checkpoint checkpoint;
  checkpoint.metadata = std::move(header.metadata);
  const bool coded = with_codes && sorted_metadata_of(checkpoint, "parameters") != nullptr;
  for (SafetensorsEntry& entry : header.entries) {
    const std::string* const format =
        coded ? sorted_metadata_of(checkpoint, entry.name + "_format") : nullptr;
    const bool of_blocks = coded && is_of_blocks(checkpoint, entry.name);
    const bool is_bytes =
        format == nullptr && !of_blocks && entry.type->name == std::string_view("U8");
    if (format != nullptr || (!is_bytes && !of_blocks && stored_type(entry.type->name) == nullptr))
      require_code_type(path, entry, format);
    if (wanted && !wanted(entry.name)) {
      file.skip(entry.end - entry.begin);
      continue;
    }
    std::string bytes = file.read(entry.end - entry.begin);
    if (is_bytes) {
      checkpoint.bytes.push_back({std::move(entry.name), std::move(bytes)});
      continue;
    }
    Tensor tensor(std::move(entry.shape));
    if (const StoredType* const type = stored_type(entry.type->name)) {
      load(*type, bytes, tensor.data);
    } else {
      load_codes(*entry.type, bytes, tensor.data);
    }
    checkpoint.tensors.push_back({std::move(entry.name), std::move(tensor)});
  }
  return checkpoint;
}

}  // namespace numemu::net

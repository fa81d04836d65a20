// Layout as published by Hugging Face (github.com/huggingface/safetensors, README "Format").
#include "formats/storage/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/storage/npy.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

/// The dtypes of safetensors 0.6 (Dtype in safetensors/src/tensor.rs). F8_E4M3 is the OCP format
/// without infinities; F4 is E2M1, low nibble first.
constexpr std::array<SafetensorsType, 22> kSafetensorsTypes = {{
    {"F4", 4, "float4_e2m1fn"},
    {"F6_E2M3", 6, "float6_e2m3fn"},
    {"F6_E3M2", 6, "float6_e3m2fn"},
    {"F8_E5M2", 8, "float8_e5m2"},
    {"F8_E4M3", 8, "float8_e4m3fn"},
    {"F8_E8M0", 8, "float8_e8m0fnu"},
    {"F8_E4M3FNUZ", 8, "float8_e4m3fnuz"},
    {"F8_E5M2FNUZ", 8, "float8_e5m2fnuz"},
    {"I8", 8, "int8"},
    {"U8", 8, "uint8"},
    {"F16", 16, "float16"},
    {"BF16", 16, "bfloat16"},
    {"F32", 32, "float32"},
    {"F64", 64, "float64"},
    {"BOOL", 8, ""},
    {"I16", 16, ""},
    {"U16", 16, ""},
    {"I32", 32, ""},
    {"U32", 32, ""},
    {"C64", 64, ""},
    {"I64", 64, ""},
    {"U64", 64, ""},
}};

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) {
  for (const SafetensorsType& type : kSafetensorsTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

const SafetensorsType* safetensors_type_of_format(std::string_view format) {
  for (const SafetensorsType& type : kSafetensorsTypes) {
    if (type.format == format && !format.empty()) return &type;
  }
  return nullptr;
}

std::vector<std::string_view> safetensors_code_types() {
  std::vector<std::string_view> names;
  for (const SafetensorsType& type : kSafetensorsTypes) {
    if (!type.format.empty()) names.push_back(type.name);
  }
  return names;
}

namespace {

constexpr int kDeepest = 3;  // { tensor: { key: [ numbers ] } }
constexpr std::int64_t kLengthBytes = 8;
constexpr char kMetadata[] = "__metadata__";
static_assert(std::endian::native == std::endian::little, "the header length is copied as it is");

Json header_json(const std::string& path, std::string_view text) {
  if (text.empty() || text.front() != '{') {
    throw Error(
        fmt::format("{}: byte {}: expected a JSON header that starts with {{", path, kLengthBytes));
  }
  try {
    return parse_guarded(text, path + ": header", kDeepest);
  } catch (const JsonSyntaxError& error) {
    if (error.out_of_range) throw Error(path + ": header: expected JSON numbers in range");
    throw Error(fmt::format("{}: byte {}: expected a JSON header, found a syntax error", path,
                            kLengthBytes + static_cast<std::int64_t>(error.byte) - 1));
  }
}

/// The members in the order of their keys: which of several mistakes is reported, and the order of
/// empty tensors and of metadata, are the same for every order in the file.
std::vector<const Json::Member*> by_key(const Json& object) {
  std::vector<const Json::Member*> members;
  for (const Json::Member& member : object.items()) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  return members;
}

/// One tensor's entry; every failure names it.
class EntryReader {
 public:
  EntryReader(const std::string& path, const std::string& name, const Json& json)
      : where_(path + ": tensor " + quote_name(name) + ": "), json_(json) {
    entry_.name = name;
  }

  SafetensorsEntry read(std::int64_t data_bytes, const std::vector<std::string_view>& accepted) {
    if (!json_.is_object()) fail("expected an object");
    for (const Json::Member* member : by_key(json_)) {
      const std::string& key = member->name;
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail(fmt::format("expected the keys dtype, shape and data_offsets, found {}",
                         quote_name(key)));
      }
    }
    read_type(accepted);
    entry_.shape = numbers("shape");
    const std::vector<std::int64_t> offsets = numbers("data_offsets");
    if (offsets.size() != 2)
      fail(fmt::format("data_offsets: expected 2 numbers, found {}", offsets.size()));
    entry_.begin = offsets[0];
    entry_.end = offsets[1];
    if (entry_.begin > entry_.end || entry_.end > data_bytes) {
      fail(fmt::format(
          "data_offsets: expected an ascending range inside the {} of data, found [{}, {}]",
          counted(data_bytes, "byte"), entry_.begin, entry_.end));
    }
    check_size();
    return std::move(entry_);
  }

 private:
  [[noreturn]] void fail(const std::string& text) const { throw Error(where_ + text); }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(fmt::format("expected a key {}", key));
    return *found;
  }

  void read_type(const std::vector<std::string_view>& accepted) {
    const Json& type = at("dtype");
    if (!type.is_string()) fail("dtype: expected a string");
    const std::string& name = type.text();
    entry_.type = safetensors_type(name);
    if (accepted.empty() && entry_.type == nullptr)
      fail(fmt::format("dtype: expected one of safetensors 0.6, found {}", quote_name(name)));
    if (!accepted.empty() && std::find(accepted.begin(), accepted.end(), name) == accepted.end()) {
      fail(fmt::format("dtype: expected {} or {}, found {}",
                       joined(std::span(accepted).first(accepted.size() - 1), ", "),
                       accepted.back(), quote_name(name)));
    }
  }

  std::vector<std::int64_t> numbers(const char* key) const {
    const Json& list = at(key);
    if (!list.is_array()) fail(fmt::format("{}: expected a list of numbers", key));
    if (list.size() > kMostAxes)
      fail(fmt::format("{}: expected at most {} numbers, found {}", key, kMostAxes, list.size()));
    std::vector<std::int64_t> out;
    for (const Json& number : list) {
      if (!number.is_number_unsigned() || number.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
        fail(fmt::format("{}: expected integers of 0..2^63-1", key));
      }
      out.push_back(number.get<std::int64_t>());
    }
    return out;
  }

  void check_size() {
    const std::int64_t found = entry_.end - entry_.begin;
    const std::optional<std::int64_t> elements = element_count_of(entry_.shape);
    const auto bits = static_cast<unsigned __int128>(elements.value_or(0)) * entry_.type->bits;
    const bool overflow = !elements || bits / 8 > INT64_MAX;
    const std::string of =
        fmt::format("{} of shape {}", entry_.type->name,
                    entry_.shape.size() > 16 ? fmt::format("of {} axes", entry_.shape.size())
                                             : shape_text(entry_.shape));
    if (!overflow && bits % 8 != 0) {
      fail(fmt::format("shape: expected a whole number of bytes, found {} of {} for {}",
                       counted(*elements, "element"), counted(entry_.type->bits, "bit"), of));
    }
    const auto bytes = static_cast<std::int64_t>(bits / 8);
    if (overflow || bytes != found) {
      fail(fmt::format("data_offsets: expected {} for {}, found {}",
                       overflow ? "more than 2^63 bytes" : counted(bytes, "byte"), of, found));
    }
    entry_.elements = *elements;
  }

  std::string where_;
  const Json& json_;
  SafetensorsEntry entry_;
};

void read_metadata(const std::string& path, const Json& json, SafetensorsHeader& header) {
  if (!json.is_object()) throw Error(path + ": __metadata__: expected an object of strings");
  for (const Json::Member* member : by_key(json)) {
    const auto& [key, value] = *member;
    if (!value.is_string())
      throw Error(fmt::format("{}: __metadata__: {}: expected a string", path, quote_name(key)));
    header.metadata.emplace_back(key, value.text());
  }
}

void check_coverage(const std::string& path, const SafetensorsHeader& header,
                    std::int64_t data_bytes) {
  std::int64_t covered = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != covered) {
      throw Error(fmt::format(
          "{}: tensor {}: data_offsets: expected to begin at {} (no hole, no overlap), found {}",
          path, quote_name(entry.name), covered, entry.begin));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    throw Error(fmt::format("{}: header: expected tensors that cover all {} of data, found {}",
                            path, counted(data_bytes, "byte"), covered));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text,
                                           std::int64_t data_bytes,
                                           const std::vector<std::string_view>& accepted) {
  const Json json = header_json(path, text);
  SafetensorsHeader header;
  for (const Json::Member* member : by_key(json)) {
    const auto& [name, entry] = *member;
    if (name == kMetadata) {
      read_metadata(path, entry, header);
    } else {
      header.entries.push_back(EntryReader(path, name, entry).read(data_bytes, accepted));
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  check_coverage(path, header, data_bytes);
  return header;
}

SafetensorsHeader read_safetensors_header(InputFile& file,
                                          const std::vector<std::string_view>& accepted) {
  if (file.left() < kLengthBytes)
    file.fail(
        fmt::format("expected a header length of 8 bytes, found {}", counted(file.left(), "byte")));
  std::uint64_t length = 0;
  file.read(&length, sizeof length);
  const std::int64_t most = std::min(kMaxHeaderBytes, file.left());
  if (length > static_cast<std::uint64_t>(most)) {
    file.fail(fmt::format("expected a header of at most {} bytes, found {} declared at byte 0",
                          most, length));
  }
  const std::string text = file.read(static_cast<std::int64_t>(length));
  return parse_safetensors_header(file.path(), text, file.left(), accepted);
}

std::string format_safetensors_header(const std::string& path, const SafetensorsHeader& header) {
  Json json = Json::object();
  for (const auto& [key, value] : header.metadata) json[kMetadata][key] = value;
  for (const SafetensorsEntry& entry : header.entries) {
    auto& out = json[entry.name];
    out["dtype"] = entry.type->name;
    out["shape"] = entry.shape;
    out["data_offsets"] = {entry.begin, entry.end};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Error&) {
    throw Error(path + ": header: expected tensor names and metadata in UTF-8");
  }
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

std::string quote_name(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  std::string text = Json(name.substr(0, kLongest)).dump(-1, Json::NotUtf8::replace);
  return "'" + text.substr(1, text.size() - 2) + (name.size() > kLongest ? "..." : "") + "'";
}

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

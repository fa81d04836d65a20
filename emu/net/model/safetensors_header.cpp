// Layout as published by Hugging Face (github.com/huggingface/safetensors, README "Format").
#include "emu/net/model/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 3;  // { tensor: { key: [ numbers ] } }
constexpr std::int64_t kLengthBytes = 8;
constexpr char kMetadata[] = "__metadata__";

/// Refuses what nlohmann/json would accept in silence: a key twice, and nesting that only wastes
/// memory.
class Guard {
 public:
  explicit Guard(const std::string& path) : path_(path) {}
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kDeepest) {
      throw Error(path_ + ": header: expected at most 3 levels of nesting");
    }
    if (event == Event::object_start) keys_[depth].clear();
    if (event == Event::key && !keys_[depth - 1].insert(parsed.get<std::string>()).second) {
      throw Error(fmt::format("{}: header: expected each key once, found {} twice", path_,
                              quote_name(parsed.get<std::string>())));
    }
    return true;
  }

 private:
  const std::string& path_;
  std::array<std::set<std::string>, kDeepest> keys_;
};

Json parse_json(const std::string& path, std::string_view text) {
  if (text.empty() || text.front() != '{') {
    throw Error(
        fmt::format("{}: byte {}: expected a JSON header that starts with {{", path, kLengthBytes));
  }
  Guard guard(path);
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      return guard(depth, event, parsed);
    });
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("{}: byte {}: expected a JSON header, found a syntax error", path,
                            kLengthBytes + static_cast<std::int64_t>(error.byte) - 1));
  } catch (const Json::exception&) {  // a number beyond the range of a double
    throw Error(path + ": header: expected JSON numbers in range");
  }
}

/// One tensor's entry; every failure names it.
class EntryReader {
 public:
  EntryReader(const std::string& path, const std::string& name, const Json& json)
      : where_(path + ": tensor " + quote_name(name) + ": "), json_(json) {
    entry_.name = name;
  }

  HeaderEntry read(std::int64_t data_bytes) {
    if (!json_.is_object()) fail("expected an object");
    for (const auto& [key, value] : json_.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail(fmt::format("expected the keys dtype, shape and data_offsets, found {}",
                         quote_name(key)));
      }
    }
    read_type();
    entry_.shape = numbers("shape");
    const std::vector<std::int64_t> offsets = numbers("data_offsets");
    if (offsets.size() != 2)
      fail(fmt::format("data_offsets: expected 2 numbers, found {}", offsets.size()));
    entry_.begin = offsets[0];
    entry_.end = offsets[1];
    if (entry_.begin > entry_.end || entry_.end > data_bytes) {
      fail(fmt::format(
          "data_offsets: expected an ascending range inside the {} bytes of data, found [{}, {}]",
          data_bytes, entry_.begin, entry_.end));
    }
    check_size();
    return entry_;
  }

 private:
  [[noreturn]] void fail(const std::string& text) const { throw Error(where_ + text); }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(fmt::format("expected a key {}", key));
    return *found;
  }

  void read_type() {
    const Json& type = at("dtype");
    if (!type.is_string()) fail("dtype: expected a string");
    entry_.type = stored_type(type.get_ref<const std::string&>());
    if (entry_.type == nullptr) {
      fail(fmt::format("dtype: expected F32, F16 or BF16, found {}",
                       quote_name(type.get_ref<const std::string&>())));
    }
  }

  std::vector<std::int64_t> numbers(const char* key) const {
    const Json& list = at(key);
    if (!list.is_array()) fail(fmt::format("{}: expected a list of numbers", key));
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
    std::int64_t bytes = entry_.type->bytes;
    bool overflow = false;
    for (const std::int64_t extent : entry_.shape)
      overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
    // A zero extent makes any product zero, also one that overflowed on the way.
    if (std::find(entry_.shape.begin(), entry_.shape.end(), 0) != entry_.shape.end()) {
      bytes = 0;
      overflow = false;
    }
    if (overflow || bytes != found) {
      fail(fmt::format("data_offsets: expected {} bytes for {} of shape {}, found {}",
                       overflow ? "more than 2^63" : std::to_string(bytes), entry_.type->name,
                       entry_.shape.size() > 16
                           ? "of " + std::to_string(entry_.shape.size()) + " axes"
                           : to_string(entry_.shape),
                       found));
    }
    entry_.elements = bytes / entry_.type->bytes;
  }

  std::string where_;
  const Json& json_;
  HeaderEntry entry_;
};

void read_metadata(const std::string& path, const Json& json, Header& header) {
  if (!json.is_object()) throw Error(path + ": __metadata__: expected an object of strings");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      throw Error(fmt::format("{}: __metadata__: {}: expected a string", path, quote_name(key)));
    header.metadata.emplace_back(key, value.get<std::string>());
  }
}

void check_coverage(const std::string& path, const Header& header, std::int64_t data_bytes) {
  std::int64_t covered = 0;
  for (const HeaderEntry& entry : header.entries) {
    if (entry.begin != covered) {
      throw Error(fmt::format(
          "{}: tensor {}: data_offsets: expected to begin at {} (no hole, no overlap), found {}",
          path, quote_name(entry.name), covered, entry.begin));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    throw Error(
        fmt::format("{}: header: expected tensors that cover all {} bytes of data, found {}", path,
                    data_bytes, covered));
  }
}

}  // namespace

Header parse_header(const std::string& path, std::string_view text, std::int64_t data_bytes) {
  const Json json = parse_json(path, text);
  Header header;
  for (const auto& [name, entry] : json.items()) {
    if (name == kMetadata) {
      read_metadata(path, entry, header);
    } else {
      header.entries.push_back(EntryReader(path, name, entry).read(data_bytes));
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const HeaderEntry& a, const HeaderEntry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  check_coverage(path, header, data_bytes);
  return header;
}

std::string format_header(const std::string& path, const Header& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : header.metadata) json[kMetadata][key] = value;
  for (const HeaderEntry& entry : header.entries) {
    auto& out = json[entry.name];
    out["dtype"] = entry.type->name;
    out["shape"] = entry.shape;
    out["data_offsets"] = {entry.begin, entry.end};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {
    throw Error(path + ": header: expected tensor names and metadata in UTF-8");
  }
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return text;
}

std::string quote_name(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  std::string text = Json(std::string(name.substr(0, kLongest)))
                         .dump(-1, ' ', false, Json::error_handler_t::replace);
  return "'" + text.substr(1, text.size() - 2) + (name.size() > kLongest ? "..." : "") + "'";
}

}  // namespace numemu::net

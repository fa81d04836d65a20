// The keys in the order of docs: written all, read strictly.
#include "formats/storage/sidecar.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "formats/blocks/block_format.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/rounding.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu {
namespace {

/// Short keys, 64 extents and six digests have at most 3,000 characters.
constexpr std::int64_t kLargest = 65536;
/// JSON numbers are exact up to here in every language.
constexpr std::int64_t kMost = std::int64_t{1} << 53;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::optional<std::string> text(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  return value.text("");
}

std::string version(const JsonReader& value) {
  std::string text = value.text("");
  if (text.empty() || text[0] < '0' || text[0] > '9')
    value.fail("the version that wrote it, such as \"0.1.0\"");
  return text;
}

std::optional<std::string> sha256(const JsonReader& value) {
  const std::optional<std::string> digest = text(value);
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (digest && (digest->size() != 64 || digest->find_first_not_of(kDigits) != std::string::npos))
    value.fail("64 lower-case hexadecimal digits");
  return digest;
}

std::map<std::string, std::string> digests(const JsonReader& value) {
  std::map<std::string, std::string> by_role;
  if (value.is_null()) return by_role;
  value.require_keys({kSidecarRoles.begin(), kSidecarRoles.end()});
  for (const auto& [role, json] : value.value().items()) {
    const std::optional<std::string> digest = sha256(value.member(role));
    if (!digest) value.member(role).fail("64 lower-case hexadecimal digits");
    by_role.emplace(role, *digest);
  }
  return by_role;
}

std::optional<std::int64_t> integer(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  // 8.0 is a number of another program.
  if (value.value().is_number_float()) value.fail(fmt::format("an integer from 0 to {}", kMost));
  return value.integer(0, 0, kMost);
}

/// Keys of random bits use all 64 bits.
std::optional<std::uint64_t> seed(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.value().is_number_unsigned())
    value.fail(fmt::format("an integer from 0 to {}", ~std::uint64_t{0}));
  return value.value().get<std::uint64_t>();
}

std::optional<bool> truth(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.value().is_boolean()) value.fail("true or false");
  return value.value().get<bool>();
}

std::optional<BitOrder> order(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  return parse_bit_order(value.one_of("", {"low-first", "high-first"}, "bit order"));
}

std::optional<ArrayShape> shape(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.value().is_array()) value.fail("a list of extents");
  if (value.value().size() > kMostAxes)
    value.fail(fmt::format("at most {} axes, found {}", kMostAxes, value.value().size()));
  ArrayShape extents;
  for (std::size_t i = 0; i < value.value().size(); ++i) {
    const std::optional<std::int64_t> extent = integer(value.element(i));
    if (!extent) value.element(i).fail("an extent");
    extents.push_back(*extent);
  }
  return extents;
}

/// Checks that names are known. The file of a codebook is opened where its entries are needed.
void check_names(const JsonReader& root, Sidecar& sidecar) {
  const bool codebook = sidecar.format && !codebook_file(*sidecar.format).empty();
  if (sidecar.format && !codebook) {
    sidecar.format = at(root.member("format"), [&] { return &find_format(*sidecar.format); })->name;
  }
  if (sidecar.codebook_sha256) {
    const JsonReader value = root.member("codebook_sha256");
    if (!codebook) value.fail("null, since the format is not a codebook");
  }
  if (sidecar.rounding)
    at(root.member("rounding"), [&] { return parse_rounding(*sidecar.rounding); });
  if (sidecar.overflow)
    at(root.member("overflow"), [&] { return parse_overflow(*sidecar.overflow); });
  if (!sidecar.block) return;
  const JsonReader value = root.member("block");
  const BlockFormat& block = *at(value, [&] { return &find_block_format(*sidecar.block); });
  sidecar.block = block.name;
  // Scales are stored beside the codes under the name of their block format.
  if (sidecar.format && *sidecar.format != block.element->name &&
      *sidecar.format != block.scale->name) {
    value.fail(fmt::format("a block format of {}, found {} of {} and {}",
                           quote_name(*sidecar.format), block.name, block.element->name,
                           block.scale->name));
  }
}

/// Values that must fit each other.
void check_values(const JsonReader& root, const Sidecar& sidecar) {
  if (sidecar.axis && sidecar.logical_shape) {
    const auto axes = static_cast<std::int64_t>(sidecar.logical_shape->size());
    // Scales and zero points per channel have one axis, and name that of their codes.
    const bool per_channel =
        axes == 1 && sidecar.block && find_block_format(*sidecar.block).span == Span::channel;
    if (*sidecar.axis >= axes && !per_channel) {
      root.member("axis").fail(
          fmt::format("an axis of the logical_shape {}, counted from 0, found {}",
                      shape_text(*sidecar.logical_shape), *sidecar.axis));
    }
  }
  if (sidecar.order && !sidecar.packed.value_or(false)) {
    root.member("order").fail(
        fmt::format("null for unpacked codes, found {}", to_string(*sidecar.order)));
  }
}

/// Any JSON object that names its version of numemu.
bool is_sidecar(const std::string& path) {
  try {
    InputFile file(path);
    if (file.left() > kLargest) return false;
    const Json json = parse_json(file.read(file.left()), path);
    return json.is_object() && json.contains("numemu");
  } catch (const Error&) {
    return false;
  }
}

template <class T, class ToText>
void check_one(const std::string& codes_path, const char* key, const std::optional<T>& stored,
               const std::optional<T>& told, const std::string& by, const ToText& to_text) {
  if (!stored || !told || *stored == *told) return;
  throw Error(fmt::format("{}: {}: {} contradicts {} {}", sidecar_path(codes_path), key,
                          to_text(*stored), by, to_text(*told)));
}

}  // namespace

std::string sidecar_path(const std::string& codes_path) {
  const std::string beside = codes_path + ".json";
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside : linked_file(codes_path) + ".json";
}

PendingFile pending_sidecar(const std::string& codes_path, const Sidecar& sidecar) {
  const Json json = {
      {"numemu", sidecar.numemu},
      {"format", or_null(sidecar.format)},
      {"codebook_sha256", or_null(sidecar.codebook_sha256)},
      {"block", or_null(sidecar.block)},
      {"axis", or_null(sidecar.axis)},
      {"logical_shape", or_null(sidecar.logical_shape)},
      {"packed", or_null(sidecar.packed)},
      {"order", sidecar.order ? Json(to_string(*sidecar.order)) : Json()},
      {"rounding", or_null(sidecar.rounding)},
      {"overflow", or_null(sidecar.overflow)},
      {"scale_rule", or_null(sidecar.scale_rule)},
      {"seed", or_null(sidecar.seed)},
      {"sha256", or_null(sidecar.sha256)},
      {"written_with", sidecar.written_with.empty() ? Json() : Json(sidecar.written_with)},
  };
  return {linked_file(codes_path) + ".json", {json.dump(), "\n"}};
}

void remove_sidecar(const std::string& codes_path) {
  for (const std::string& path : {codes_path + ".json", linked_file(codes_path) + ".json"}) {
    std::error_code ignored;
    if (is_sidecar(path)) std::filesystem::remove(path, ignored);
  }
}

std::optional<Sidecar> read_sidecar(const std::string& codes_path) {
  const std::string path = sidecar_path(codes_path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  InputFile file(path);
  if (file.left() > kLargest)
    throw Error(
        fmt::format("{}: expected at most {} bytes, found {}", path, kLargest, file.left()));
  const Json json = parse_json(file.read(file.left()), path);
  const JsonReader root(json, path);
  root.require_keys({"numemu", "format", "codebook_sha256", "block", "axis", "logical_shape",
                     "packed", "order", "rounding", "overflow", "scale_rule", "seed", "sha256",
                     "written_with"});
  if (!root.has("numemu")) root.fail("a key 'numemu' with the version that wrote it");
  Sidecar sidecar;
  sidecar.numemu = version(root.member("numemu"));
  sidecar.format = text(root.member("format"));
  sidecar.codebook_sha256 = sha256(root.member("codebook_sha256"));
  sidecar.block = text(root.member("block"));
  sidecar.axis = integer(root.member("axis"));
  sidecar.logical_shape = shape(root.member("logical_shape"));
  sidecar.packed = truth(root.member("packed"));
  sidecar.order = order(root.member("order"));
  sidecar.rounding = text(root.member("rounding"));
  sidecar.overflow = text(root.member("overflow"));
  sidecar.scale_rule = text(root.member("scale_rule"));
  sidecar.seed = seed(root.member("seed"));
  sidecar.sha256 = sha256(root.member("sha256"));
  sidecar.written_with = digests(root.member("written_with"));
  check_names(root, sidecar);
  check_values(root, sidecar);
  return sidecar;
}

void check_sidecar(const std::string& codes_path, const Sidecar& sidecar, const SidecarTold& told) {
  const auto name = [](const std::string& value) { return quote_name(value); };
  check_one(codes_path, "format", sidecar.format, told.format, "--format", name);
  check_one(codes_path, "block", sidecar.block, told.block, told.block_by, name);
  check_one(codes_path, "packed", sidecar.packed, told.packed, "--packed",
            [](bool value) { return value ? "true" : "false"; });
  check_one(codes_path, "order", sidecar.order, told.order, "--order",
            [](BitOrder value) { return to_string(value); });
  check_one(codes_path, "axis", sidecar.axis, told.axis, told.axis_by,
            [](std::int64_t value) { return std::to_string(value); });
}

std::string codebook_file(const std::string& format_name) {
  constexpr std::string_view kOpen = "codebook(";
  if (!format_name.starts_with(kOpen) || !format_name.ends_with(')')) return "";
  return format_name.substr(kOpen.size(), format_name.size() - kOpen.size() - 1);
}

std::string codebook_sha256(const Format& f) {
  if (f.kind != Kind::codebook) return "";
  const std::vector<double> entries = finite_values(f);
  return sha256_hex(
      {reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(double)});
}

}  // namespace numemu

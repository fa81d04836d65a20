// The keys in the order of docs: written all, read strictly.
#include "formats/storage/sidecar.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/npy_header.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu {
namespace {

/// Eleven short keys and 64 extents have at most 2,000 characters.
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

std::optional<std::int64_t> integer(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  return value.integer(0, 0, kMost);
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

template <class T, class ToText>
void check_one(const std::string& codes_path, const char* key, const std::optional<T>& stored,
               const std::optional<T>& told, const ToText& to_text) {
  if (!stored || !told || *stored == *told) return;
  throw Error(fmt::format("{}: {}: {} contradicts --{} {}", sidecar_path(codes_path), key,
                          to_text(*stored), key, to_text(*told)));
}

}  // namespace

std::string sidecar_path(const std::string& codes_path) { return codes_path + ".json"; }

void write_sidecar(const std::string& codes_path, const Sidecar& sidecar) {
  const Json json = {
      {"numemu", sidecar.numemu},
      {"format", or_null(sidecar.format)},
      {"block", or_null(sidecar.block)},
      {"axis", or_null(sidecar.axis)},
      {"logical_shape", or_null(sidecar.logical_shape)},
      {"packed", or_null(sidecar.packed)},
      {"order", sidecar.order ? Json(to_string(*sidecar.order)) : Json()},
      {"rounding", or_null(sidecar.rounding)},
      {"overflow", or_null(sidecar.overflow)},
      {"scale_rule", or_null(sidecar.scale_rule)},
      {"seed", or_null(sidecar.seed)},
  };
  write_atomically(sidecar_path(codes_path), {json.dump(), "\n"});
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
  root.require_keys({"numemu", "format", "block", "axis", "logical_shape", "packed", "order",
                     "rounding", "overflow", "scale_rule", "seed"});
  if (!root.has("numemu")) root.fail("a key 'numemu' with the version that wrote it");
  Sidecar sidecar;
  sidecar.numemu = root.member("numemu").text("");
  sidecar.format = text(root.member("format"));
  sidecar.block = text(root.member("block"));
  sidecar.axis = integer(root.member("axis"));
  sidecar.logical_shape = shape(root.member("logical_shape"));
  sidecar.packed = truth(root.member("packed"));
  sidecar.order = order(root.member("order"));
  sidecar.rounding = text(root.member("rounding"));
  sidecar.overflow = text(root.member("overflow"));
  sidecar.scale_rule = text(root.member("scale_rule"));
  sidecar.seed = integer(root.member("seed"));
  return sidecar;
}

void check_sidecar(const std::string& codes_path, const Sidecar& sidecar, const SidecarTold& told) {
  const auto name = [](const std::string& value) { return quote_name(value); };
  check_one(codes_path, "format", sidecar.format, told.format, name);
  check_one(codes_path, "block", sidecar.block, told.block, name);
  check_one(codes_path, "packed", sidecar.packed, told.packed,
            [](bool value) { return value ? "true" : "false"; });
  check_one(codes_path, "order", sidecar.order, told.order,
            [](BitOrder value) { return to_string(value); });
  check_one(codes_path, "axis", sidecar.axis, told.axis,
            [](std::int64_t value) { return std::to_string(value); });
}

}  // namespace numemu

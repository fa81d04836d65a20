#include "api/array_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "formats/blocks/block_format.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/number_text.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::api {
namespace {

void check_scale_rule(const std::string& path, const Sidecar& sidecar) {
  if (!sidecar.scale_rule) return;
  // Where no block format determines the kind of scales of the rule, that of mxfp4 is one kind,
  // and a real scale the other.
  at(sidecar_path(path) + ": scale_rule", [&] {
    try {
      find_scale_rule(*sidecar.scale_rule, find_block_format(sidecar.block.value_or("mxfp4")));
    } catch (const Error&) {
      if (sidecar.block) throw;
      find_scale_rule(*sidecar.scale_rule);
    }
  });
}

bool is_signed_integer(ArrayType type) {
  return type == ArrayType::int8 || type == ArrayType::int16 || type == ArrayType::int32 ||
         type == ArrayType::int64;
}

template <class Integer>
void widen_integers(const std::string& path, const Array& integers, float* out) {
  const auto* x = integers.as<Integer>();
  for (std::int64_t i = 0; i < integers.elements(); ++i) {
    out[i] = static_cast<float>(x[i]);
    // 2^63 would not fit the way back, and is not an int64.
    if (out[i] < 0x1p63f && static_cast<std::int64_t>(out[i]) == x[i]) continue;
    throw Error(fmt::format("{}: element {} is {}, which float32 cannot represent", path, i, x[i]));
  }
}

Array float32_of_integers(const std::string& path, const Array& integers) {
  Array values(ArrayType::float32, integers.shape);
  const auto widen = integers.type == ArrayType::int8    ? widen_integers<std::int8_t>
                     : integers.type == ArrayType::int16 ? widen_integers<std::int16_t>
                     : integers.type == ArrayType::int32 ? widen_integers<std::int32_t>
                                                         : widen_integers<std::int64_t>;
  widen(path, integers, values.as<float>());
  return values;
}

/// Numbers of a format as float32 numbers. Each must be one, or is rounded to nearest even where
/// `rounded` counts them.
Array float32_of_codes(const std::string& path, Codes source, std::int64_t* rounded = nullptr) {
  const Format& float32 = find_format("float32");
  if (source.format->name == float32.name) return std::move(source.array);
  const std::int64_t n = source.array.elements();
  Array values(ArrayType::float32, source.array.shape);
  Array flags(ArrayType::uint8, {exact_in(*source.format, float32) ? 0 : n});
  Conversion widen;
  widen.format = &float32;
  widen.overflow = Overflow::propagate;
  const void* codes = source.array.data.data();
  const FlagCounts counts =
      convert_codes(widen, *source.format, codes, n, values.data.data(),
                    flags.elements() == 0 ? nullptr : flags.as<std::uint8_t>());
  if (rounded != nullptr) *rounded = counts.inexact;
  if (flags.elements() == 0 || counts.inexact == 0 || rounded != nullptr) return values;
  const std::uint8_t* first =
      std::find_if(flags.as<std::uint8_t>(), flags.as<std::uint8_t>() + n,
                   [](std::uint8_t flag) { return (flag & kInexact) != 0; });
  const std::int64_t i = first - flags.as<std::uint8_t>();
  throw Error(
      fmt::format("{}: element {} is {}, which float32 cannot represent and would be rounded "
                  "twice: round it first, x.astype('float32')",
                  path, i, to_double(decode(*source.format, load_code(*source.format, codes, i)))));
}

std::string read_standard_input() {
  std::string text;
  char part[1 << 16];
  while (const std::size_t got = std::fread(part, 1, sizeof part, stdin)) text.append(part, got);
  if (std::ferror(stdin) != 0) throw file_error("-: cannot read the standard input");
  return text;
}

std::string read_all(const std::string& path) {
  if (path == "-") return read_standard_input();
  InputFile file(path);
  return file.read(file.left());
}

constexpr std::string_view kBlanks = " \t\r\v\f", kBlanksAndLines = " \t\r\v\f\n";

/// Without `blanks` at either end.
std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

/// `take` gets every line without the blanks around it; its Error gets file and line.
template <class Take>
void for_each_line(const std::string& path, const Take& take) {
  const std::string all = read_all(path);
  // A last line without a number is how files end; before the first number it is a mistake.
  const std::string_view text =
      std::string_view(all).substr(0, all.find_last_not_of(kBlanksAndLines) + 1);
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++line;
    try {
      take(trimmed(text.substr(begin, end - begin), kBlanks));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: line {}: {}", path, line, error.what()), error.kind());
    }
    begin = end + 1;
  }
}

}  // namespace

std::vector<StoredArray> open_inputs(const std::vector<ArrayName>& names) {
  std::vector<StoredArray> arrays = open_together(names);
  for (const StoredArray& array : arrays) {
    if (array.sidecar) check_scale_rule(array.path(), *array.sidecar);
  }
  return arrays;
}

StoredArray open_input(const std::string& path) { return std::move(open_inputs({{path}}).front()); }

Array read_float32(const std::string& path, const std::string& from, std::int64_t* rounded) {
  // With `rounded` there is no option that names a format.
  CodesTold told{.told_by = rounded != nullptr ? "" : "--from"};
  if (!from.empty()) told.format = &find_format(from);
  StoredArray stored = open_input(path);
  if (from.empty() && !is_safetensors(path) && !stored.sidecar) {
    Array array = read_array(stored);
    if (is_signed_integer(array.type)) return float32_of_integers(path, array);
    require_type(path, array.type, {ArrayType::float16, ArrayType::float32, ArrayType::float64},
                 rounded != nullptr ? "numbers (codes need a sidecar that names their format)"
                                    : "numbers (for codes: --from FORMAT)");
    const Format& format = find_format(to_string(array.type));
    return float32_of_codes(path, checked_codes(path, format, std::move(array)), rounded);
  }
  return float32_of_codes(path, read_numbers(stored, told), rounded);
}

std::vector<Value> read_text_numbers(const std::string& path) {
  std::vector<Value> values;
  for_each_line(path, [&](std::string_view line) { values.push_back(parse_number(line)); });
  return values;
}

Codes read_text_codes(const std::string& path, const Format& format) {
  std::vector<std::uint64_t> codes;
  bool prefixed = false;
  for_each_line(path, [&](std::string_view line) {
    if (codes.empty()) prefixed = line.starts_with("0x") || line.starts_with("0X");
    codes.push_back(parse_code(line, prefixed));
    if (codes.back() <= format.last_code()) return;
    throw Error(fmt::format("expected a code of {} within 0..{:#x}, found {:#x}", format.name,
                            format.last_code(), codes.back()));
  });
  Codes read{&format, Array(container_type(format), {static_cast<std::int64_t>(codes.size())})};
  for (std::size_t i = 0; i < codes.size(); ++i)
    store_code(format, read.array.data.data(), static_cast<std::int64_t>(i), codes[i]);
  return read;
}

std::string text_of_numbers(const Codes& codes) {
  std::string text;
  for (std::int64_t i = 0; i < codes.array.elements(); ++i)
    text += hex_text(decode(*codes.format, load_code(*codes.format, codes.array.data.data(), i))) +=
        '\n';
  return text;
}

void require_array_name(const std::string& option, const std::string& path) {
  constexpr std::array<std::string_view, 12> kOthers = {".csv",   ".gguf", ".html", ".json",
                                                        ".jsonl", ".md",   ".npz",  ".onnx",
                                                        ".pt",    ".pth",  ".tsv",  ".txt"};
  if (std::ranges::any_of(kOthers, [&](std::string_view end) { return path.ends_with(end); }))
    throw usage_error(fmt::format("{}: {}: expected a .npy or .safetensors file", option, path));
}

void require_file(const std::string& option, const std::string& path) {
  if (path != "-") return;
  throw usage_error(
      option +
      ": expected a file, found -: arrays need a file, only text can use standard streams");
}

}  // namespace numemu::api

// Text is for formats whose values no array type holds, and for eyes; it is exact both ways.
#include "cli/text_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/number_text.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {
namespace {

std::string read_standard_input() {
  std::string text;
  char part[1 << 16];
  while (const std::size_t got = std::fread(part, 1, sizeof part, stdin)) text.append(part, got);
  if (std::ferror(stdin) != 0) throw Error("-: cannot read the standard input");
  return text;
}

std::string read_all(const std::string& path) {
  if (path == "-") return read_standard_input();
  InputFile file(path);
  return file.read(file.left());
}

std::uint64_t code_at(const Format& format, const Array& codes, std::int64_t i) {
  const int bytes = bytes_of(codes.type);
  std::uint64_t container = 0;
  std::memcpy(&container, codes.data.data() + i * bytes, static_cast<std::size_t>(bytes));
  return container >> format.container_shift;
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
      throw Error(fmt::format("{}: line {}: {}", path, line, error.what()));
    }
    begin = end + 1;
  }
}

}  // namespace

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
  const auto bytes = static_cast<std::size_t>(bytes_of(read.array.type));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t container = codes[i] << format.container_shift;
    std::memcpy(read.array.data.data() + i * bytes, &container, bytes);
  }
  return read;
}

void write_text_numbers(const std::string& path, const Format& format, const Array& codes) {
  std::string text;
  for (std::int64_t i = 0; i < codes.elements(); ++i)
    text += hex_text(decode(format, code_at(format, codes, i))) += '\n';
  if (path != "-") {
    OutputFiles file;
    file.add_text("values", path, text);
    return file.publish();
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

void require_file(const std::string& option, const std::string& path) {
  if (path != "-") return;
  throw Error(option +
              ": expected a file, found -: arrays need a file, only text can use standard streams");
}

}  // namespace numemu::cli

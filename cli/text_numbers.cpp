// Text is for formats whose values no array type holds, and for eyes; it is exact both ways.
#include "cli/text_numbers.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/number_text.hpp"

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

}  // namespace

std::vector<Value> read_text_numbers(const std::string& path) {
  const std::string text = read_all(path);
  std::vector<Value> values;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    try {
      values.push_back(parse_number(line));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: line {}: {}", path, values.size() + 1, error.what()));
    }
    begin = end + 1;
  }
  return values;
}

void write_text_numbers(const std::string& path, const Format& format, const Array& codes) {
  std::string text;
  for (std::int64_t i = 0; i < codes.elements(); ++i)
    text += hex_text(decode(format, code_at(format, codes, i))) += '\n';
  if (path != "-") return write_atomically(path, {text});
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error(fmt::format("-: cannot write the standard output: {}", std::strerror(errno)));
}

}  // namespace numemu::cli

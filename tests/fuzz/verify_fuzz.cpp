// Files of vectors: plain or gzip text with a first line that says what they are about, and, after
// a line "--fields F", the lines of another program.
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/foreign.hpp"
#include "emu/oracle/layout.hpp"
#include "emu/oracle/text_form.hpp"
#include "formats/storage/byte_stream.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

using namespace numemu;
using namespace numemu::oracle;

constexpr std::int64_t kBatch = 64;

/// Of a file without a first line.
Subject usual_subject() {
  return operation_subject(Operation::mul, find_format("float16"), find_format("float16"), {},
                           Overflow::ieee);
}

void read_file(const std::string& path) {
  constexpr std::int64_t kMostProducts = 64;
  ByteStream stream(path);
  TextReader reader(stream.name(), as_text(stream.name(), [&](char* to, std::size_t most) {
                      return stream.read(to, most);
                    }));
  const Subject subject = reader.header().empty() ? usual_subject() : parse_header(reader.header());
  const Layout layout = layout_of(subject);
  Records records;
  while (reader.read(layout, subject.k > kMostProducts ? 1 : kBatch, records)) {
    if (subject.k > kMostProducts) continue;
    evaluate(subject, records);
  }
}

void read_lines(std::string_view fields, std::string_view lines) {
  const Subject subject = unit_subject(unit::find_unit("nvidia.h100.wgmma.e4m3.f32"), 4);
  ForeignReader reader(parse_fields(fields), ElementOrder::msb, subject, "lines",
                       [&](char* to, std::size_t most) {
                         const std::size_t part = lines.copy(to, most);
                         lines.remove_prefix(part);
                         return part;
                       });
  Records records;
  while (reader.read(kBatch, records)) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::InputFile file;
  const std::string_view text = fuzz::text_of(data, size), option = "--fields ";
  if (text.starts_with(option)) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    fuzz::run(size, fuzz::kTight, [&] {
      read_lines(text.substr(option.size(), end - option.size()), text.substr(end + 1));
    });
  } else {
    file.write(text);
    fuzz::run(size, fuzz::kTight, [] { read_file(file.path()); });
  }
  return 0;
}

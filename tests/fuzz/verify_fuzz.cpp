// Files of vectors: plain or gzip text with a first line that says what they are about; after a
// line "--fields F" the lines of another program; npz archives; after "--ports" $readmemh files,
// each behind a line "--NAME".
#include "emu/net/data/npz.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/files/array_reader.hpp"
#include "emu/oracle/files/foreign.hpp"
#include "emu/oracle/files/text.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/unit/description/json.hpp"
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

template <class Reader>
void read_all(Reader& reader) {
  constexpr std::int64_t kMostProducts = 64;
  std::unique_ptr<unit::Unit> own;
  if (const std::string text(described_in(reader.header())); !text.empty())
    own = unit::make_unit(unit::parse_description(text, "line 1"));
  const Subject subject =
      reader.header().empty() ? usual_subject() : parse_header(reader.header(), own.get());
  const Layout layout = layout_of(subject);
  Records records;
  while (reader.read(layout, subject.k > kMostProducts ? 1 : kBatch, records)) {
    if (subject.k > kMostProducts) continue;
    evaluate(subject, records);
  }
}

void read_file(const std::string& path) {
  ByteStream stream(path);
  TextReader reader(stream.name(),
                    as_text(stream.name(), as_utf8(stream.name(), [&](char* to, std::size_t most) {
                              return stream.read(to, most);
                            })));
  read_all(reader);
}

void read_arrays(const std::string& path) {
  ArrayReader reader(path, net::read_npz_arrays(path, true));
  read_all(reader);
}

ByteReader bytes_of(std::string_view text) {
  return [text](char* to, std::size_t most) mutable {
    const std::size_t part = text.copy(to, most);
    text.remove_prefix(part);
    return part;
  };
}

void read_ports(std::string_view text) {
  PortReader reader("tb", [&](const std::string& file) -> ByteReader {
    const std::string name = file.substr(3, file.size() - 7);  // tb.NAME.hex
    const std::size_t at = text.find("\n--" + name + "\n");
    if (at == std::string_view::npos) return {};
    const std::string_view rest = text.substr(at + name.size() + 4);
    return bytes_of(rest.substr(0, rest.find("\n--")));
  });
  read_all(reader);
}

void read_lines(std::string_view fields, std::string_view lines) {
  const Subject subject = unit_subject(unit::find_unit("nvidia.h100.wgmma.e4m3.f32"), 4);
  ForeignReader reader(parse_fields(fields), ElementOrder::msb, subject, "lines", bytes_of(lines));
  Records records;
  while (reader.read(kBatch, records)) {
  }
}

}  // namespace

NUMEMU_FUZZ_TARGET(verify)(const std::uint8_t* data, std::size_t size) {
  static fuzz::InputFile file;
  const std::string_view text = fuzz::text_of(data, size), option = "--fields ";
  if (text.starts_with(option)) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    fuzz::run(size, fuzz::kTight, [&] {
      read_lines(text.substr(option.size(), end - option.size()), text.substr(end + 1));
    });
  } else if (text.starts_with("--ports\n")) {
    fuzz::run(size, fuzz::kTight, [&] { read_ports(text); });
  } else if (text.starts_with("PK")) {
    file.write(text);
    fuzz::run(size, fuzz::kPromised, [] { read_arrays(file.path()); });
  } else {
    file.write(text);
    fuzz::run(size, fuzz::kTight, [] { read_file(file.path()); });
  }
  return 0;
}

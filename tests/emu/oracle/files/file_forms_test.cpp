// Vector files as csv, JSON lines, $readmemh ports and npz.
#include "emu/oracle/files/file_forms.hpp"

#include <zlib.h>

#include <cstring>
#include <map>

#include "emu/oracle/files/text.hpp"
#include "emu/oracle/generator.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::file_forms_test {
namespace {

struct Made {
  Subject subject;
  Layout layout;
  Records records;
  explicit Made(const std::string& line, std::int64_t n)
      : subject(parse_header("# numemu-vectors 1 " + line)), layout(layout_of(subject)) {
    const Generator generator(subject);
    records = Records(layout, n);
    generator.fill(0, records);
  }
};

const std::string kUnit = "unit=nvidia.b200.tcgen05.e2m1.f32.nv16 k=16";

std::string all_of(FileForm form, const Made& m) {
  std::string text = form_head(form, m.subject, m.layout);
  append_records(form, m.layout, m.records, text);
  return text;
}

TEST_CASE("csv and JSON lines have the words of text, by name", "[fast]") {
  const Made m("op=dot from=float8_e4m3fn to=float16 rounding=rne overflow=ieee k=2", 2);
  const std::string header =
      "# numemu-vectors 1 op=dot from=float8_e4m3fn to=float16 rounding=rne overflow=ieee seed=0 "
      "level=1 k=2 style=mixed";
  CHECK(all_of(FileForm::text, m) ==
        header + "\nF8 32 A1 7E 55B5 5E5D 01 # random\n08 3E 4D 97 80A8 940A 01 # ties\n");
  CHECK(all_of(FileForm::csv, m) ==
        header +
            "\na0,a1,b0,b1,c,out,flags,class\nF8,32,A1,7E,55B5,5E5D,01,random\n"
            "08,3E,4D,97,80A8,940A,01,ties\n");
  const std::string lines = all_of(FileForm::jsonl, m);
  CHECK(
      lines ==
      "{\"numemu_vectors\":\"" + header +
          "\"}\n"
          R"({"a":["F8","32"],"b":["A1","7E"],"c":"55B5","out":"5E5D","flags":"01","class":"random"})"
          "\n"
          R"({"a":["08","3E"],"b":["4D","97"],"c":"80A8","out":"940A","flags":"01","class":"ties"})"
          "\n");
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
    CHECK_NOTHROW(Json::parse(std::string_view(lines).substr(at, lines.find('\n', at) - at)));
}

TEST_CASE("ports of $readmemh are one word a record, element 0 lowest", "[fast]") {
  Made m("op=dot from=float6_e3m2fn to=float16 rounding=rne overflow=ieee k=3", 1);
  m.records.columns[0] = {0x01, 0x20, 0x3f};
  m.records.class_of[0] = m.records.class_number("ties");
  std::string text = port_head(m.subject);
  append_port(m.layout[0], m.records, 0, text);
  CHECK(
      text ==
      "// numemu-vectors 1 op=dot from=float6_e3m2fn to=float16 rounding=rne overflow=ieee seed=0 "
      "level=1 k=3 style=mixed\n3F801 // ties\n");
  // The reader takes such a word where the field says so.
  Layout port = {m.layout[0]};
  port[0].packed = true;
  TextReader reader("a.hex", [&, at = std::size_t{0}](char* to, std::size_t most) mutable {
    const std::size_t n = std::min(most, text.size() - at);
    std::memcpy(to, text.data() + at, n);
    at += n;
    return n;
  });
  Records read;
  REQUIRE(reader.read(port, 9, read));
  CHECK(read.columns[0] == m.records.columns[0]);
}

std::uint64_t number(const std::string& bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = count; i-- > 0;)
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

/// The entries of a zip archive, as its directory lists them, CRCs checked.
std::map<std::string, std::string> entries_of(const std::string& zip) {
  std::map<std::string, std::string> entries;
  const std::size_t end = zip.size() - 22;
  REQUIRE(zip.substr(end, 4) == "PK\x05\x06");
  std::size_t at = number(zip, end + 16, 4);
  for (std::uint64_t n = number(zip, end + 10, 2); n > 0; --n) {
    REQUIRE(zip.substr(at, 4) == "PK\x01\x02");
    const std::size_t name_size = number(zip, at + 28, 2), local = number(zip, at + 42, 4);
    const std::string name = zip.substr(at + 46, name_size);
    REQUIRE(zip.substr(local, 4) == "PK\x03\x04");
    REQUIRE(zip.substr(local + 30, name_size) == name);
    const std::string data = zip.substr(local + 30 + name_size, number(zip, at + 20, 4));
    CHECK(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()) ==
          number(zip, at + 16, 4));
    CHECK(number(zip, local + 14, 4) == number(zip, at + 16, 4));
    entries[name] = data;
    at += 46 + name_size;
  }
  CHECK(at == end);
  return entries;
}

TEST_CASE("npz files hold one array for each field, as arrays of codes are stored", "[fast]") {
  const Made m(kUnit, 5);
  NpzWriter writer(m.subject, m.layout);
  writer.append(m.records);
  writer.append(m.records);
  const auto entries = entries_of(writer.file());
  std::vector<std::string> names;
  for (const auto& [name, data] : entries) names.push_back(name);
  CHECK(names == std::vector<std::string>{"a.npy", "b.npy", "c.npy", "class.npy", "d.npy",
                                          "flags.npy", "numemu_vectors.npy", "sa.npy", "sb.npy"});
  const auto array = [&](const std::string& name, const std::string& descr,
                         const std::string& shape) {
    const std::string& data = entries.at(name);
    CHECK_THAT(data,
               Catch::Contains("'descr': '" + descr + "'") && Catch::Contains("'shape': " + shape));
    const std::size_t header = 10 + number(data, 8, 2);
    CHECK(header % 64 == 0);
    CHECK(data[header - 1] == '\n');
    return data.substr(header);
  };
  const std::string a = array("a.npy", "|u1", "(10, 16)");
  REQUIRE(a.size() == 160);
  for (std::size_t i = 0; i < 160; ++i)
    CHECK(static_cast<std::uint8_t>(a[i]) == m.records.columns[0][i % 80]);
  const std::string d = array("d.npy", "<f4", "(10,)");
  CHECK(number(d, 24, 4) == m.records.columns[m.records.columns.size() - 2][1]);
  const std::string classes = array("class.npy", "|S16", "(10,)");
  CHECK(std::string(classes.c_str()) == m.records.class_name(0));
  const std::string line = header_line(m.subject);
  CHECK(array("numemu_vectors.npy", "|S" + std::to_string(line.size()), "()") == line);
}

TEST_CASE("npz files have signed integers where a register is two's complement", "[fast]") {
  Made m("unit=intel.emr.vpdpbusds.u8xs8.s32", 1);
  m.records.columns[2] = {0xfffffffe};
  NpzWriter writer(m.subject, m.layout);
  writer.append(m.records);
  const std::string c = entries_of(writer.file()).at("c.npy");
  CHECK_THAT(c, Catch::Contains("'<i4'"));
  CHECK(c.substr(c.size() - 4) == "\xfe\xff\xff\xff");
}

TEST_CASE("unknown file formats are refused", "[fast]") {
  CHECK_THROWS_WITH(parse_file_form("jsn"), Catch::StartsWith("unknown file format 'jsn'"));
}

}  // namespace
}  // namespace numemu::oracle::file_forms_test

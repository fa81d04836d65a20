#include "emu/oracle/files/file_forms.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "emu/oracle/files/text.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "formats/suggest.hpp"

namespace numemu::oracle {

namespace {

constexpr std::size_t kClassBytes = 16;

/// The header of an array of byte strings of `width` bytes; no ArrayType is one.
std::string bytes_header(const ArrayShape& shape, std::size_t width) {
  std::string header = format_npy_header(ArrayType::uint8, shape);
  const std::string old = "'|u1'", now = fmt::format("'|S{}'", width);
  header.replace(header.find(old), old.size(), now);
  // The padding before the final newline shrinks by what the type grew.
  header.erase(header.size() - 1 - (now.size() - old.size()), now.size() - old.size());
  return header;
}

class Zip {
 public:
  void add(const std::string& name, const std::string& header, const std::string& data) {
    const std::uint64_t size = header.size() + data.size();
    if (size >= kMost || bytes_.size() + size >= kMost)
      throw Error("npz: expected less than 4 GiB, found more: make fewer records");
    uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(data.data()), data.size());
    const std::string about = entry(crc, size, name);
    directory_ += "PK\x01\x02";
    put(directory_, 20, 2);  // made by version 2.0
    directory_ += about;
    put(directory_, 0, 2);  // no comment
    put(directory_, 0, 8);  // disk, internal and external attributes
    put(directory_, bytes_.size(), 4);
    directory_ += name;
    ++entries_;
    bytes_ += "PK\x03\x04";
    bytes_ += about + name + header + data;
  }
  std::string file() && {
    const std::uint64_t begin = bytes_.size();
    bytes_ += directory_;
    bytes_ += "PK\x05\x06";
    put(bytes_, 0, 4);
    put(bytes_, entries_, 2);
    put(bytes_, entries_, 2);
    put(bytes_, directory_.size(), 4);
    put(bytes_, begin, 4);
    put(bytes_, 0, 2);
    return std::move(bytes_);
  }

 private:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  static void put(std::string& to, std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
  }
  /// What a local header and the directory share: stored, of 1 January 1980.
  static std::string entry(std::uint64_t crc, std::uint64_t size, const std::string& name) {
    constexpr int kVersion = 20, kDate = 0x21;
    std::string text;
    put(text, kVersion, 2);
    put(text, 0, 2);
    put(text, 0, 2);
    put(text, 0, 2);
    put(text, kDate, 2);
    put(text, crc, 4);
    put(text, size, 4);
    put(text, size, 4);
    put(text, name.size(), 2);
    put(text, 0, 2);
    return text;
  }

  std::string bytes_, directory_;
  std::uint64_t entries_ = 0;
};

}  // namespace

ArrayType array_type_of(const Field& f) {
  if (f.format != nullptr) return container_type(*f.format);
  const bool number = f.name == "c" || f.name == "d";
  if (f.bits <= 8) return number ? ArrayType::int8 : ArrayType::uint8;
  if (f.bits <= 16) return number ? ArrayType::int16 : ArrayType::uint16;
  return number ? ArrayType::int32 : ArrayType::uint32;
}

NpzWriter::NpzWriter(const Subject& s, const Layout& layout)
    : subject_(s), layout_(layout), columns_(layout.size()) {}

std::int64_t NpzWriter::record_bytes(const Layout& layout) {
  std::int64_t bytes = kClassBytes;
  for (const Field& f : layout) bytes += f.count * bytes_of(array_type_of(f));
  return bytes;
}

void NpzWriter::append(const Records& records) {
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    const Field& field = layout_[f];
    const auto bytes = static_cast<std::size_t>(bytes_of(array_type_of(field)));
    const int shift = field.format != nullptr ? field.format->container_shift : 0;
    const bool extends = field.format == nullptr && (field.name == "c" || field.name == "d");
    const std::size_t begin = columns_[f].size(), n = records.columns[f].size();
    columns_[f].resize(begin + n * bytes);
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t code = records.columns[f][i] << shift;
      if (extends && field.bits < 64 && (code >> (field.bits - 1) & 1) != 0)
        code |= ~std::uint64_t{0} << field.bits;
      std::memcpy(columns_[f].data() + begin + i * bytes, &code, bytes);  // little-endian
    }
  }
  for (std::int64_t i = 0; i < records.size; ++i) {
    std::string name(records.class_name(i).substr(0, kClassBytes));
    name.resize(kClassBytes);
    classes_ += name;
  }
  n_ += records.size;
}

std::string NpzWriter::file() const {
  Zip zip;
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    ArrayShape shape = {n_};
    if (layout_[f].count > 1) shape.push_back(layout_[f].count);
    zip.add(layout_[f].name + ".npy", format_npy_header(array_type_of(layout_[f]), shape),
            columns_[f]);
  }
  zip.add("class.npy", bytes_header({n_}, kClassBytes), classes_);
  const std::string line = header_line(subject_);
  zip.add("numemu_vectors.npy", bytes_header({}, line.size()), line);
  return std::move(zip).file();
}

namespace {

constexpr std::array<std::string_view, 6> kForms = {"text", "csv",      "jsonl",
                                                    "npz",  "readmemh", "sv"};

void append_csv(const Layout& layout, const Records& records, std::string& text) {
  for (std::int64_t i = 0; i < records.size; ++i) {
    for (std::size_t f = 0; f < layout.size(); ++f) {
      const std::size_t begin = text.size();
      append_words(layout[f], records, static_cast<int>(f), i, text);
      std::replace(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), ' ', ',');
      text += ',';
    }
    text.append(records.class_name(i)) += '\n';
  }
}

void append_jsonl(const Layout& layout, const Records& records, std::string& text) {
  std::string words;
  for (std::int64_t i = 0; i < records.size; ++i) {
    text += '{';
    for (std::size_t f = 0; f < layout.size(); ++f) {
      words.clear();
      append_words(layout[f], records, static_cast<int>(f), i, words);
      text.append("\"").append(layout[f].name).append(layout[f].count > 1 ? "\":[\"" : "\":\"");
      for (const char c : words) {
        if (c == ' ') {
          text += "\",\"";
        } else {
          text += c;
        }
      }
      text += layout[f].count > 1 ? "\"]," : "\",";
    }
    text.append("\"class\":\"").append(records.class_name(i)).append("\"}\n");
  }
}

}  // namespace

FileForm parse_file_form(std::string_view text) {
  return static_cast<FileForm>(index_named("file format", text, kForms));
}

std::string form_head(FileForm form, const Subject& s, const Layout& layout) {
  const std::string line = header_line(s);
  if (form == FileForm::jsonl) return Json({{"numemu_vectors", line}}).dump() + '\n';
  if (form == FileForm::text) return line + '\n';
  std::string names = line + '\n';
  for (const Field& f : layout) {
    for (std::int64_t e = 0; e < f.count; ++e)
      names += f.count > 1 ? fmt::format("{}{},", f.name, e) : f.name + ',';
  }
  return names + "class\n";
}

void append_records(FileForm form, const Layout& layout, const Records& records,
                    std::string& text) {
  if (form == FileForm::csv) return append_csv(layout, records, text);
  if (form == FileForm::jsonl) return append_jsonl(layout, records, text);
  append_text(layout, records, text);
}

std::string port_head(const Subject& s) { return "//" + header_line(s).substr(1) + '\n'; }

void append_port(const Field& field, const Records& records, int f, std::string& text) {
  Field packed = field;
  packed.packed = true;
  for (std::int64_t i = 0; i < records.size; ++i) {
    append_words(packed, records, f, i, text);
    if (const std::string_view name = records.class_name(i); !name.empty())
      text.append(" // ").append(name);
    text += '\n';
  }
}

}  // namespace numemu::oracle

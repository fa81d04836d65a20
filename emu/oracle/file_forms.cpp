#include "emu/oracle/file_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "emu/oracle/text_writer.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/suggest.hpp"

namespace numemu::oracle {
namespace {

constexpr std::array<std::string_view, 5> kForms = {"text", "csv", "jsonl", "npz", "readmemh"};

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

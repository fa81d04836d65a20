// Escaping by replacement tables; each place has its own short list of dangerous characters.
#include "experiments/report/escape.hpp"

#include <cctype>

namespace numemu::experiments {
namespace {

bool starts_with_nocase(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower[i]) return false;
  }
  return true;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_json(const Json& value) {
  const std::string raw = value.dump(-1, Json::NotUtf8::replace);
  std::string out;
  out.reserve(raw.size());
  for (const char c : raw) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_script(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    out += source[i];
    if (source[i] != '<') continue;
    const std::string_view rest = source.substr(i + 1);
    if (rest.starts_with("!--") || starts_with_nocase(rest, "script") ||
        starts_with_nocase(rest, "/script")) {
      out += '\\';
    }
  }
  return out;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string spreadsheet_text(const std::string& text) {
  return text.find_first_of("=+-@\t\r") == 0 ? "'" + text : text;
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\r' || c == '\n') {
      out += ' ';
    } else {
      if (std::string_view("\\`*[]<>|").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace numemu::experiments

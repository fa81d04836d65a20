#include "emu/net/model/onnx/einsum_equation.hpp"

#include <fmt/format.h>

#include <map>

#include "emu/net/model/onnx/importer.hpp"
#include "formats/error.hpp"

namespace numemu::net {

EinsumEquation parse_equation(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) throw Error("expected an equation of at most 200 characters");
  EinsumEquation equation{{""}, ""};
  bool has_result = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& term = has_result ? equation.result : equation.terms.back();
    if (c == ' ') continue;
    if (c == ',' && !has_result) {
      equation.terms.emplace_back();
    } else if (text.substr(i, 2) == "->" && !has_result) {
      has_result = true;
      ++i;
    } else if (text.substr(i, 3) == "..." && term.find('.') == std::string::npos) {
      term += '.';
      i += 2;
    } else if ((c | 32) >= 'a' && (c | 32) <= 'z') {
      term += c;
    } else {
      throw Error(fmt::format("expected letters, commas, '...' and '->', found '{}'",
                              printable(text.substr(i, 1))));
    }
  }
  if (has_result) return equation;
  std::map<char, int> uses;
  for (const std::string& term : equation.terms)
    for (const char c : term) ++uses[c];
  for (const auto& [label, count] : uses)  // '.' comes before letters
    if (label == '.' || count == 1) equation.result += label;
  return equation;
}

}  // namespace numemu::net

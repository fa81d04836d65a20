#include "cli/manual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "formats/joined.hpp"

namespace numemu::cli {
namespace {

/// Text as roff takes it: with literal backslashes, and dashes that can be copied.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

/// Lines of at most 80 bytes where blanks allow, none of which begins as a request.
std::string filled(std::string_view text) {
  constexpr std::size_t kWidth = 80;
  std::string lines;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > kWidth) {
      end = text.rfind(' ', kWidth);
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    if (text.front() == '.' || text.front() == '\'') lines += "\\&";
    lines.append(text.substr(0, end)) += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string bold(std::string_view text) { return "\\fB" + literal(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + literal(text) + "\\fR"; }

std::string bold_list(std::vector<std::string> words) {
  for (std::string& word : words) word = bold(word);
  return joined(words, ", ");
}

/// "-o, --out FILE".
std::string usage_of(const ShownOption& option) {
  std::string text = bold_list(option.names);
  if (option.value.empty()) return text;
  if (!text.empty()) text += ' ';
  return text + italic(option.value);
}

std::string tagged(const std::string& term, const std::string& text) {
  return ".TP\n" + term + "\n" + filled(text);
}

std::string option_text(const ShownOption& option) {
  std::string text = literal(option.help);
  std::vector<std::string> more;
  if (option.required) more.push_back("required");
  if (!option.limits.empty()) more.push_back(literal(option.limits));
  if (!option.standard.empty()) more.push_back("default: " + literal(option.standard));
  if (!option.excludes.empty()) more.push_back("not with " + bold_list(option.excludes));
  return more.empty() ? text : text + " (" + joined(more, "; ") + ")";
}

std::string page_head(std::string_view name, const Release& release, std::string_view help) {
  std::string title(name);
  std::ranges::transform(title, title.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return fmt::format(".TH {} 1 \"{}\" \"{}\" \"\"\n.SH NAME\n{}.SH SYNOPSIS\n", literal(title),
                     release.date, literal(release.version),
                     filled(literal(name) + " \\- " + literal(help)));
}

constexpr char kExitCodesSection[] = R"(.SH EXIT STATUS
.TP
0
The command has done its work.
.TP
1
A verdict: results differ, no rule fits, a gate is missed.
.TP
2
The command line, a file or the machine is not as expected.
One line on standard error says what.
)";

}  // namespace

std::string manual_page(const Program& program, const std::string& command,
                        const Release& release) {
  const std::vector<ShownOption> options = program.options(command);
  std::string text;
  if (command.empty()) {
    text = page_head("numemu", release,
                     "bit-exact emulation of number formats, matrix units and networks");
    text += bold("numemu") + " " + italic("COMMAND") + " [" + italic("OPTION") + " ...]\n";
    text += ".SH COMMANDS\n";
    for (const Program::Listed& one : program.commands())
      text += tagged(bold(one.name), literal(one.help));
  } else {
    const auto listed = std::ranges::find(program.commands(), command, &Program::Listed::name);
    text = page_head("numemu-" + command, release, listed->help);
    text += bold("numemu " + command) + " [" + italic("OPTION") + " ...]";
    for (const ShownOption& option : options) {
      if (option.names.empty()) text += " [" + italic(option.value) + "]";
    }
    text += "\n";
  }
  text += ".SH OPTIONS\n";
  for (const ShownOption& option : options) text += tagged(usage_of(option), option_text(option));
  if (command.empty()) {
    text += R"(.SH ENVIRONMENT
.TP
.B NUMEMU_DATA
The folder of shipped data, in place of the installed one.
.TP
.B NUMEMU_CACHE
The folder of data that commands make and keep; else
.I $XDG_CACHE_HOME/numemu
or
.IR ~/.cache/numemu .
)";
  }
  text += kExitCodesSection;
  text += ".SH SEE ALSO\n";
  if (!command.empty()) return text + ".BR numemu (1)\n";
  for (const Program::Listed& one : program.commands())
    text += fmt::format(".BR {} (1){}\n", literal("numemu-" + one.name),
                        &one == &program.commands().back() ? "" : ",");
  return text;
}

}  // namespace numemu::cli

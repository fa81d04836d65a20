#include "cli/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "emu/unit/unit.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"

namespace numemu::cli {
namespace {

/// Lines of what a shell offers.
class Offer {
 public:
  explicit Offer(std::string begin) : begin_(std::move(begin)) {}

  void add(const std::string& word, const std::string& help = "") {
    if (word.starts_with(begin_)) lines_ += word + '\t' + help + '\n';
  }
  /// Of an option's value.
  void add_values(const ShownOption& option) {
    const std::string& value = option.value;
    const auto has = [&](std::string_view part) { return value.find(part) != std::string::npos; };
    const WordList words = option.words   ? option.words
                           : value == "F" ? format_words
                           : value == "U" ? unit_words
                                          : WordList();
    if (words) {
      for (const std::string& word : words()) add(word);
    }
    if (value == "DIR" || value == "FOLDER") {
      kind_ = "folders";
    } else if (value == "U" || has("FILE") || has(".") || has("COMMAND")) {
      kind_ = "files";
    }
  }
  std::string text() const { return kind_ + '\n' + lines_; }

 private:
  std::string begin_, kind_ = "words", lines_;
};

bool is_flag(const ShownOption& option) { return option.value.empty(); }

void add_names(const std::vector<ShownOption>& options, Offer& offer) {
  for (const ShownOption& option : options) {
    for (const std::string& name : option.names) offer.add(name, option.help);
  }
}

}  // namespace

std::vector<std::string> format_words() {
  std::vector<std::string> words;
  for (const Format* format : named_formats()) {
    words.push_back(format->name);
    for (std::string& alias : aliases_of(*format)) words.push_back(std::move(alias));
  }
  return words;
}

std::vector<std::string> unit_words() {
  std::vector<std::string> words;
  for (const unit::Unit* one : unit::all_units()) {
    const std::string& name = one->row().name;
    words.push_back(name);
    if (const std::size_t dot = name.find('.'); dot != std::string::npos)
      words.push_back(name.substr(dot + 1));
  }
  return words;
}

std::string completions(const Program& program, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  Offer offer(last);
  if (words.size() <= 1) {
    for (const Program::Listed& command : program.commands()) offer.add(command.name, command.help);
    if (last.starts_with('-')) add_names(program.options(""), offer);
    return offer.text();
  }
  const std::vector<ShownOption> options = program.options(words.front());
  const std::string& before = words[words.size() - 2];
  const auto named = std::ranges::find_if(options, [&](const ShownOption& option) {
    return std::ranges::find(option.names, before) != option.names.end();
  });
  if (words.size() > 2 && named != options.end() && !is_flag(*named)) {
    offer.add_values(*named);
  } else if (last.starts_with('-')) {
    add_names(options, offer);
  } else {
    for (const ShownOption& option : options) {
      if (option.names.empty()) offer.add_values(option);
    }
  }
  return offer.text();
}

std::string completion_script(const std::string& shell) {
  if (shell == "bash") {
    return R"(# bash completion of numemu: the program knows its commands, options and values.
_numemu() {
  local kind candidates IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]}
  { read -r kind; mapfile -t candidates; } < <("${COMP_WORDS[0]/#\~/$HOME}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=("${candidates[@]%%$'\t'*}")
  case $kind in
    files) compopt -o filenames; COMPREPLY+=($(compgen -f -- "$word")) ;;
    folders) compopt -o filenames; COMPREPLY+=($(compgen -d -- "$word")) ;;
  esac
}
complete -F _numemu numemu
)";
  }
  return R"(#compdef numemu
# zsh completion of numemu: the program knows its commands, options and values.
_numemu() {
  local line
  local -a lines shown
  lines=("${(@f)$(${~words[1]} --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${(@)lines[2,-1]}"; do
    [[ -n $line ]] && shown+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  (( $#shown )) && _describe numemu shown
  case $lines[1] in
    files) _files ;;
    folders) _files -/ ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _numemu "$@"; else compdef _numemu numemu; fi
)";
}

}  // namespace numemu::cli

#include "emu/oracle/text_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

/// A line is turned as a whole; longer ones are refused.
constexpr std::size_t kLongest = std::size_t{1} << 22;

/// "in,out,class" and "3F,40,mixed" as "3F 40 # mixed", and names as nothing.
std::string of_csv(std::string_view line) {
  const std::size_t comma = line.rfind(',');
  const std::string_view last = line.substr(comma + 1);
  if (last == "class") return "";
  std::string text(line.substr(0, comma));
  std::replace(text.begin(), text.end(), ',', ' ');
  return last.empty() ? text : text.append(" # ").append(last);
}

class Turner {
 public:
  Turner(std::string name, ByteReader bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}

  std::size_t read(char* to, std::size_t most) {
    while (given_ == turned_.size() && !ended_) turn();
    const std::size_t part = std::min(most, turned_.size() - given_);
    std::copy_n(turned_.data() + given_, part, to);
    given_ += part;
    return part;
  }

 private:
  /// Turns every whole line that is there.
  void turn() {
    constexpr std::size_t kPiece = 1 << 16;
    const std::size_t before = rest_.size();
    rest_.resize(before + kPiece);
    const std::size_t got = bytes_(rest_.data() + before, kPiece);
    rest_.resize(before + got);
    ended_ = got == 0;
    turned_.clear();
    given_ = 0;
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find('\n', std::max(begin, before))) != std::string::npos ||
                          (ended_ && (end = rest_.size()) > begin);
         begin = std::min(end + 1, rest_.size())) {
      ++line_;
      append(std::string_view(rest_).substr(begin, end - begin));
      if (end != rest_.size()) turned_ += '\n';
    }
    rest_.erase(0, begin);
    if (rest_.size() > kLongest) {
      throw Error(fmt::format("{}: line {}: expected at most {} bytes, found a longer line", name_,
                              line_ + 1, kLongest));
    }
  }

  void append(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('{')) {
      append_json(line);
    } else if (line.starts_with('#') || line.find(',') == std::string_view::npos) {
      turned_ += line;
    } else {
      turned_ += of_csv(line);
    }
  }

  /// The values of an object of texts and lists of texts.
  void append_json(std::string_view line) {
    bool is_class = false;
    while (true) {
      const std::size_t begin = line.find('"');
      if (begin == std::string_view::npos) return;
      std::size_t end = begin + 1;
      std::string text;
      for (; end < line.size() && line[end] != '"'; ++end) {
        end += line[end] == '\\';  // of \" and \\, all that there is in headers
        if (end < line.size()) text += line[end];
      }
      if (end >= line.size()) {
        throw Error(fmt::format("{}: line {}: expected the end of a text, found that of the line",
                                name_, line_));
      }
      line.remove_prefix(end + 1);
      const std::size_t next = line.find_first_not_of(" \t");
      if (next != std::string_view::npos && line[next] == ':') {
        is_class = text == "class";
      } else if (!is_class || !text.empty()) {
        turned_.append(is_class ? "# " : "").append(text) += ' ';
      }
    }
  }

  std::string name_;
  ByteReader bytes_;
  std::string rest_, turned_;  ///< not yet turned, and turned of which `given_` bytes are given
  std::size_t given_ = 0;
  std::int64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace

ByteReader as_text(std::string name, ByteReader bytes) {
  auto turner = std::make_shared<Turner>(std::move(name), std::move(bytes));
  return [turner](char* to, std::size_t most) { return turner->read(to, most); };
}

}  // namespace numemu::oracle

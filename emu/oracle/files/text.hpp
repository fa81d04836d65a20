// Records of text: hexadecimal words, the class after #; every error names the line.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "emu/oracle/record.hpp"

namespace numemu::oracle {

/// Gives at most `most` bytes of a file and returns their number, 0 at the end.
using ByteReader = std::function<std::size_t(char* to, std::size_t most)>;

/// The same text without a UTF-8 byte-order mark at its beginning. Throws Error naming the file
/// where it is UTF-16 or a zip archive.
ByteReader as_utf8(std::string name, ByteReader);

/// Text of a file as a class or inside an error: printable ASCII, at most 40 letters.
std::string shown(std::string_view);

/// Passes text on and turns csv and JSON lines into it, line by line: words separated by blanks,
/// the class after #. In JSON lines the fields must come in the order of the layout; names of csv
/// columns are passed over. Lines keep their numbers. Throws Error for an unfinished text in a line
/// of JSON; `name` is what it calls the file.
ByteReader as_text(std::string name, ByteReader bytes);

/// Reads lines of words separated by blanks. Words are hexadecimal digits of either case, with at
/// most the digits that the field has; `x`, `X`, `z`, `Z` and `?` are digits that nobody knows, _
/// between digits is ignored. Blank lines and lines that begin with # or // are comments; so is
/// what follows // or # in a record's line, but the first word after # is the record's class, or
/// that after //, where classes follow that.
/// Memory does not depend on the file: a line is at most as long as its layout needs, twice, and
/// 4096 bytes more.
class TextReader {
 public:
  /// `name` is what errors call the file. Reads the first line.
  TextReader(std::string name, ByteReader, std::string_view class_mark = "#");

  /// The first line where it says what the file is about (is_header(), also behind //), else empty.
  const std::string& header() const { return header_; }

  /// Fills `records` with the next `most` records or fewer; false where none is left. The first
  /// call decides whether optional fields are there. Throws Error "NAME: line N: expected ..." with
  /// the number of words, digits or bits that a field has.
  bool read(const Layout&, std::int64_t most, Records& records);

  /// Whether the optional fields of the layout are in the file; after the first read().
  bool has_optional() const { return has_optional_; }

 private:
  [[noreturn]] void fail(const std::string& text) const;
  /// Reads more of the file behind what is not used yet.
  void fill();
  /// The next line without blanks around it, at most `longest` bytes; nothing at the end of the
  /// file. Valid until the next call.
  std::optional<std::string_view> next_line(std::size_t longest);
  void check_words(const Layout&, std::string_view line);
  /// Writes the codes of a word, and which of their bits nobody knows from element `at` of the
  /// column on.
  void parse_word(const Field&, std::string_view word, std::uint64_t* codes, Records&,
                  std::size_t column, std::size_t at);
  void parse(const Layout&, std::string_view line, std::int64_t i, Records&);

  std::string name_;
  std::string_view class_mark_;
  ByteReader bytes_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< of what is read and not yet used
  bool ended_ = false, decided_ = false, has_optional_ = true;
  std::string header_;
  std::int64_t line_ = 0;
};

/// Appends one line for each record: its words in upper case as TestFloat has them, X where digits
/// are unknown, then " # CLASS" where it has one.
void append_text(const Layout&, const Records&, std::string& text);

/// Appends the words of one field of record i, separated by single blanks.
void append_words(const Field&, const Records&, int field, std::int64_t i, std::string& text);

}  // namespace numemu::oracle

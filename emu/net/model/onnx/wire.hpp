// The protobuf wire format (protobuf.dev, "Encoding"): the fields of one message, read in place,
// and fields appended to a string.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace numemu::net {

/// Wire types; the groups of protobuf 1 (3 and 4) are refused.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// "bytes"
std::string_view to_string(Wire);

struct WireField {
  std::uint32_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t word = 0;   ///< the value, but of wire type bytes
  std::string_view bytes;   ///< of wire type bytes
  std::int64_t offset = 0;  ///< of its tag in the file
};

/// Walks the fields of a message inside a file that lies in memory; nothing is copied or allocated.
/// Every failure throws Error("FILE: byte OFFSET: expected ..., found ...").
class WireReader {
 public:
  /// The message that is the whole file. `path` and `file` must outlive the reader.
  WireReader(const std::string& path, std::string_view file) : WireReader(path, file, file) {}
  /// A message inside the file that a field held.
  WireReader(const std::string& path, std::string_view file, std::string_view body)
      : path_(&path), file_(file), body_(body), left_(body) {}

  /// The next field, false at the end of the message.
  bool next(WireField&);
  /// The message, the text or the number that a field of this message holds; `what` names it where
  /// the wire type is another.
  WireReader message(const WireField&, std::string_view what) const;
  std::string_view text(const WireField&, std::string_view what) const;
  std::int64_t integer(const WireField&, std::string_view what) const;
  float float32(const WireField&, std::string_view what) const;

  /// How many elements a field adds to a repeated number: one where the field has wire type
  /// `element`, all that are packed where it has wire type bytes.
  std::int64_t count(const WireField&, Wire element, std::string_view what) const;
  /// Calls visit(word) for each of them; count() has checked the field.
  template <class Visit>
  static void for_each(const WireField& field, Wire element, Visit visit) {
    if (field.wire != Wire::bytes) return visit(field.word);
    for (std::string_view left = field.bytes; !left.empty();) visit(take(left, element));
  }

  std::string_view body() const { return body_; }
  const std::string& path() const { return *path_; }
  /// Where the message begins in the file.
  std::int64_t offset() const { return body_.data() - file_.data(); }
  [[noreturn]] void fail(std::int64_t offset, const std::string& text) const;

 private:
  static std::uint64_t take(std::string_view& left, Wire element);
  std::uint64_t varint(std::string_view& left, std::string_view what) const;
  std::uint64_t fixed(std::size_t bytes, std::string_view what);
  void require(const WireField&, Wire, std::string_view what) const;
  std::int64_t offset_of(std::string_view part) const { return part.data() - file_.data(); }

  const std::string* path_;
  std::string_view file_, body_, left_;
};

void put_varint(std::string& out, std::uint64_t word);
/// A field of wire type varint.
void put_number(std::string& out, std::uint32_t field, std::uint64_t word);
/// A text, bytes, or a message.
void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes);
/// A float.
void put_float(std::string& out, std::uint32_t field, float value);
/// A field as it was read.
void put_field(std::string& out, const WireField& field);
/// The message with write(field, out) in place of each of its fields `number`.
template <class Write>
std::string with_fields(WireReader message, std::uint32_t number, Write write) {
  std::string out;
  for (WireField field; message.next(field);) {
    if (field.number == number) {
      write(field, out);
    } else {
      put_field(out, field);
    }
  }
  return out;
}

}  // namespace numemu::net

// The one exception type: for wrong files, names and configurations, never inside a kernel.
#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

namespace numemu {

/// What a caller can do about an error; exit codes and bindings read it, nobody the text.
enum class ErrorKind : std::uint8_t {
  usage,     ///< options or arguments that are missing, wrong or contradict each other
  file,      ///< what cannot be opened, read, made or written
  value,     ///< what a file, a name or a text says is wrong or does not fit
  memory,    ///< what was asked for does not fit the memory
  internal,  ///< a fault of numemu or of a library
};

/// A mistake in the input. The text is one line with the file, the key or position, and what was
/// expected.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text, ErrorKind kind = ErrorKind::value)
      : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

inline Error usage_error(const std::string& text) { return Error(text, ErrorKind::usage); }
inline Error file_error(const std::string& text) { return Error(text, ErrorKind::file); }
inline Error memory_error(const std::string& text) { return Error(text, ErrorKind::memory); }

/// What `read` gives; an Error of it becomes "WHERE: ERROR", unless it begins so already, of its
/// own kind or of a given one.
template <class Read>
decltype(auto) at(const std::string& where, std::optional<ErrorKind> kind, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    const std::string start = where + ": ", text = error.what();
    throw Error(text.starts_with(start) ? text : start + text, kind.value_or(error.kind()));
  }
}

template <class Read>
decltype(auto) at(const std::string& where, Read&& read) {
  return at(where, std::nullopt, read);
}

/// Any exception as an Error, with the line that the program prints for it.
Error error_of(const std::exception_ptr&);

}  // namespace numemu

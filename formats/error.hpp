// The one exception type: for wrong files, names and configurations, never inside a kernel.
#pragma once
#include <stdexcept>
#include <string>

namespace numemu {

/// A mistake in the input. The text is one line with the file, the key or position, and what was
/// expected.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(text) {}
};

}  // namespace numemu

// A loader that does what no loader may, by the first letter of its input.
#include <stdexcept>
#include <string>

#include "formats/error.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(broken)(const std::uint8_t* data, std::size_t size) {
  numemu::fuzz::run(size, numemu::fuzz::kTight, [&] {
    switch (size > 0 ? data[0] : 0) {
      case 'x':
        throw std::out_of_range("at");
      case 'm':
        static_cast<void>(std::string(std::size_t{5} << 20, 'x').at(size));
        break;
      case 'l':
        throw numemu::Error("two\nlines");
      case 'e':
        throw numemu::Error("refused");
      default:
        break;
    }
  });
  return 0;
}

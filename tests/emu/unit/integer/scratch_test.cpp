// Kept buffers: aligned, never shared, used again.
#include <cstdint>
#include <utility>

#include "emu/unit/integer/elements.hpp"
#include "tests/catch.hpp"

namespace scratch_test {

using numemu::unit::Scratch;

TEST_CASE("scratch: buffers are apart, aligned and used again", "[fast]") {
  const std::uint8_t* first = nullptr;
  {
    Scratch a(100'000), b(100'000);
    first = a.get();
    CHECK(reinterpret_cast<std::uintptr_t>(a.get()) % 64 == 0);
    CHECK((a.get() + 100'000 <= b.get() || b.get() + 100'000 <= a.get()));
    Scratch moved(std::move(a));
    CHECK(moved.get() == first);
    CHECK(a.get() == nullptr);
    b = std::move(moved);
    CHECK(b.get() == first);
  }
  // Both lie ready; a larger one must be new, and what is too large is not kept.
  const Scratch again(99'000), other(100'000);
  CHECK((again.get() == first || other.get() == first));
  CHECK(again.get() != other.get());
  for (int i = 0; i < 3; ++i) {
    const Scratch large(std::int64_t{20} << 20);
    large.get()[(20 << 20) - 1] = 1;
  }
}

}  // namespace scratch_test


#include <utility>
#include <vector>

#include "emu/net/tensor.hpp"
#include "tests/catch.hpp"

namespace elements_test {

using namespace numemu::net;

TEST_CASE("borrowed elements are read where they lie, through moves", "[fast]") {
  const std::vector<float> lent{1, 2, 3, 4};
  Elements x = Elements::borrowed(lent);
  CHECK(x.is_borrowed());
  CHECK(std::as_const(x).data() == lent.data());
  const Elements moved = std::move(x);
  CHECK(moved.is_borrowed());
  CHECK(moved.data() == lent.data());
  CHECK(moved == Elements{1, 2, 3, 4});
  CHECK(x.empty());
}

TEST_CASE("a copy of borrowed elements owns them", "[fast]") {
  std::vector<float> lent{1, 2, 3};
  const Elements view = Elements::borrowed(lent);
  const Elements copy = view;
  Elements assigned{7};
  assigned = view;
  lent[0] = 9;
  CHECK(view[0] == 9);
  CHECK(copy == Elements{1, 2, 3});
  CHECK(assigned == Elements{1, 2, 3});
  CHECK_FALSE(copy.is_borrowed());
  CHECK_FALSE(assigned.is_borrowed());
}

TEST_CASE("whatever may write leaves lent memory as it is", "[fast]") {
  const std::vector<float> lent{1, 2, 3};
  const auto changed = [&](const auto& change) {
    Elements x = Elements::borrowed(lent);
    change(x);
    CHECK_FALSE(x.is_borrowed());
    CHECK(lent == std::vector<float>{1, 2, 3});
    return x;
  };
  CHECK(changed([](Elements& x) { x.data()[1] = 5; }) == Elements{1, 5, 3});
  CHECK(changed([](Elements& x) { *x.data() = 5; }) == Elements{5, 2, 3});
  CHECK(changed([](Elements& x) {
          for (float& v : x) v = 0;
        }) == Elements(3));
  CHECK(changed([](Elements& x) { x.back() = 5; }) == Elements{1, 2, 5});
  CHECK(changed([](Elements& x) { x.resize(2); }) == Elements{1, 2});
  CHECK(changed([&](Elements& x) { x.append(lent); }) == Elements{1, 2, 3, 1, 2, 3});
  CHECK(changed([](Elements& x) { x.assign(2, 4.0f); }) == Elements{4, 4});
  CHECK(Elements::borrowed(lent).take() == lent);
}

TEST_CASE("elements are read by index where they lie", "[fast]") {
  const std::vector<float> lent{1, 2};
  Elements x = Elements::borrowed(lent);
  CHECK(x[1] == 2);
  CHECK(x.at(0) == 1);
  CHECK(x.is_borrowed());
}

TEST_CASE("elements that a tensor owns are written in place", "[fast]") {
  Elements x(std::vector<float>{1, 2});
  const float* const before = std::as_const(x).data();
  x[0] = 3;
  x.front() += 1;
  CHECK(x.data() == before);
  CHECK(std::vector<float>(x) == std::vector<float>{4, 2});
  Elements larger(100);
  const float* const room = larger.data();
  larger = x;  // in the memory that is there
  CHECK(larger.data() == room);
  CHECK(larger == x);
  CHECK(x.take() == std::vector<float>{4, 2});
  CHECK(x.empty());
}

TEST_CASE("samples of a tensor are borrowed from it", "[fast]") {
  Tensor x({3, 2});
  for (std::size_t i = 0; i < 6; ++i) x.data[i] = static_cast<float>(i);
  const Tensor part = borrowed_samples(x, 1, 2);
  CHECK(part.shape == Shape{2, 2});
  CHECK(part.data.data() == std::as_const(x.data).data() + 2);
  CHECK(part.size() == 4);
  const Tensor none = borrowed_samples(x, 3, 0);
  CHECK(none.size() == 0);
}

}  // namespace elements_test

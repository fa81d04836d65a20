// Notes of a recipe: blocks that an axis cuts short, signs that a format loses.
#include "policies/notes/notes.hpp"

#include <algorithm>

#include "emu/net/nets.hpp"
#include "tests/catch.hpp"

namespace notes_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

std::vector<Note> typed_notes_of(const std::string& roles) {
  net::Graph graph = net::build_net("mlp", {3, 2, 1}, 10);  // 6-256-128-10
  net::initialize(graph, 0);
  net::Tensor images({4, 3, 2, 1});
  for (std::size_t i = 0; i < images.data.size(); ++i)
    images.data[i] = i % 4 == 0 ? -1.0f : static_cast<float>(i);
  return recipe_notes(
      {Recipe::parse_text(R"j({"numemu_recipe": 1, "roles": )j" + roles + "}", "recipe"), graph},
      float_reference(graph, images));
}

std::vector<std::string> notes_of(const std::string& roles) {
  return texts_of(typed_notes_of(roles));
}

}  // namespace

TEST_CASE("notes: nothing to say of float32 and of blocks that fit", "[fast]") {
  CHECK(notes_of("{}").empty());
  CHECK(notes_of(R"j({"weight": {"format": "int8"}, "activation": {"format": "int8"}})j").empty());
  CHECK(notes_of(R"j({"weight": {"format": "group(int4,2,float16)"
}
})j")
            .empty());
}

TEST_CASE("notes: scales that serve fewer elements, whatever the cause, with their bits",
          "[fast]") {
  using Notes = std::vector<std::string>;
  // Lines of 6, 256 and 128 elements: short blocks.
  CHECK(notes_of(R"j({"weight": {"format": "group(int4,200,float16)"},
                      "activation": {"format": "mxfp4"}})j") ==
        Notes{"blocks of group(int4,200,float16) are cut (axis of 128): 4.12 bits an element, not "
              "4.08: weight of fc3",
              "blocks of group(int4,200,float16) are cut (axis of 256): 4.12 bits an element, not "
              "4.08: weight of fc2",
              "blocks of group(int4,200,float16) are cut (axis of 6): 6.67 bits an element, not "
              "4.08: weight of fc1",
              "blocks of mxfp4 are cut (axis of 6): 5.33 bits an element, not 4.25: activation of "
              "fc1"});
  // A tail: 5 + 1.
  CHECK(notes_of(R"j({"activation": {"format": "group(int4,5,float32)"}})j") ==
        Notes{"blocks of group(int4,5,float32) are cut (axis of 6): 14.7 bits an element, not "
              "10.4: activation of fc1"});
  // Along the reduction.
  CHECK(notes_of(R"j({"activation": {"format": "mxfp4", "axis": "reduction"}})j") ==
        Notes{"blocks of mxfp4 are cut (axis of 6): 5.33 bits an element, not 4.25: activation of "
              "fc1"});
  // Rows.
  CHECK(notes_of(R"j({"weight": {"format": "group(int4,row,float16)"}})j") ==
        Notes{"a scale of group(int4,row,float16) serves 128 elements: 4.12 bits an element, not "
              "4: weight of fc3",
              "a scale of group(int4,row,float16) serves 256 elements: 4.06 bits an element, not "
              "4: weight of fc2",
              "a scale of group(int4,row,float16) serves 6 elements: 6.67 bits an element, not 4: "
              "weight of fc1"});
}

TEST_CASE("notes: an unsigned format says the share of negative numbers", "[fast]") {
  CHECK(notes_of(R"j({"activation": {"format": "uint8"}})j") ==
        std::vector<std::string>{"uint8 has no negative numbers, which become its lowest value: "
                                 "activation of fc1 (25.0 % negative)"});
  CHECK(notes_of(R"j({"activation": {"format": "group(uint8,2,float16,zp)"
}
})j")
            .size() == 0);
  const std::vector<std::string> weights = notes_of(R"j({"weight": {"format": "uint4"}})j");
  REQUIRE(weights.size() == 1);
  CHECK(weights[0].find("weight of fc1 (") != std::string::npos);
  CHECK(weights[0].find("weight of fc3 (") != std::string::npos);
}

TEST_CASE("notes of one kind differ in names and numbers alone", "[fast]") {
  std::vector<NoteKind> kinds;
  for (const Note& note : typed_notes_of(R"j({"weight": {"format": "group(int4,200,float16)"},
                                              "activation": {"format": "uint8"}})j"))
    kinds.push_back(note.kind);
  CHECK(std::ranges::count(kinds, NoteKind::scale_elements) == 3);
  CHECK(std::ranges::count(kinds, NoteKind::lost_signs) == 1);
  CHECK(kinds.size() == 4);
  CHECK(to_string(NoteKind::lost_signs) == "lost signs");
}

}  // namespace notes_test

// Nothing that a row holds can leave the place it is printed in.
#include "experiments/report/escape.hpp"

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace escape_test {

using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("html_text escapes the five characters", "[fast]") {
  CHECK(html_text("a<b>&\"'c") == "a&lt;b&gt;&amp;&quot;&#39;c");
  CHECK(html_text("plain é") == "plain é");
}

TEST_CASE("html_json has no angle bracket and reads back equal", "[fast]") {
  const Json value = {{"a</script>", "<!-- </SCRIPT> \u2028"}, {"n", 1.5}};
  const std::string text = html_json(value);
  CHECK(text.find('<') == std::string::npos);
  CHECK(Json::parse(text) == value);
}

TEST_CASE("html_json replaces invalid UTF-8", "[fast]") {
  CHECK(Json::parse(html_json("\xff")) == "\xEF\xBF\xBD");
}

TEST_CASE("html_script cannot close or open a script element", "[fast]") {
  CHECK(html_script("a('</script>')") == "a('<\\/script>')");
  CHECK(html_script("a('</SCRIPT>')") == "a('<\\/SCRIPT>')");
  CHECK(html_script("'<script' + '<!--'") == "'<\\script' + '<\\!--'");
  CHECK(html_script("a < b && c<d") == "a < b && c<d");
}

TEST_CASE("csv_field quotes only what needs it", "[fast]") {
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("sr(8,a)") == "\"sr(8,a)\"");
  CHECK(csv_field("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(csv_field("two\r\nlines") == "\"two\r\nlines\"");
  CHECK(csv_field("") == "");
}

TEST_CASE("markdown_cell stays in its cell", "[fast]") {
  CHECK(markdown_cell("a|b\nc") == "a\\|b c");
  CHECK(markdown_cell("<img> [x](y) `z`") == "\\<img\\> \\[x\\](y) \\`z\\`");
  CHECK(markdown_cell("float8_e4m3fn") == "float8_e4m3fn");
}

}  // namespace escape_test

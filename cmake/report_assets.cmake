# Script: writes assets.cpp, the report's page, style, scripts, charts and libraries as raw string literals.
# Called with -DSOURCE=experiments/report -DBINARY=<folder in the build>.

# A raw string literal has no escapes; its delimiter must not occur in the text.
function(literal output path)
  file(READ ${path} text)
  string(FIND "${text}" ")numemu\"" inside)
  if(NOT inside EQUAL -1)
    message(FATAL_ERROR "${path}: contains the delimiter of a raw string literal")
  endif()
  set(${output} "R\"numemu(${text})numemu\"" PARENT_SCOPE)
endfunction()

literal(page ${SOURCE}/page/page.html)
literal(style ${SOURCE}/page/report.css)
literal(libraries ${BINARY}/libraries.js)
file(GLOB scripts ${SOURCE}/js/*.js)
set(script "")
foreach(file ${scripts})
  literal(text ${file})
  string(APPEND script "\n    ${text}")
endforeach()
file(GLOB charts ${SOURCE}/charts/*.vl.json)
set(rows "")
foreach(file ${charts})
  get_filename_component(name ${file} NAME)
  string(REPLACE ".vl.json" "" name ${name})
  literal(text ${file})
  string(APPEND rows "       {\"${name}\", ${text}},\n")
endforeach()

set(source "// Generated: the files of experiments/report and the charting libraries.
#include \"experiments/report/html.hpp\"

namespace numemu::experiments {

const ReportAssets& embedded_assets() {
  static const ReportAssets assets = {
      ${page},
      ${style},${script},
      ${libraries},
      {
${rows}      }};
  return assets;
}

}  // namespace numemu::experiments
")
file(WRITE ${BINARY}/assets.cpp "${source}")

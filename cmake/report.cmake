# The report's parts of numemu_sweeps: JSON, SQLite, and the page's files and charting libraries as a generated source.
find_package(SQLite3 REQUIRED)

set(report_source ${PROJECT_SOURCE_DIR}/experiments/report)
set(report_binary ${PROJECT_BINARY_DIR}/report)
set(report_assets ${report_binary}/assets.cpp)
file(GLOB report_charts CONFIGURE_DEPENDS ${report_source}/charts/*.vl.json)
file(GLOB report_scripts CONFIGURE_DEPENDS ${report_source}/js/*.js)

# Runs in every build (some 30 ms when nothing changed): so Node.js that is installed or removed later is noticed without
# configuring again, and a failed download is tried again.
add_custom_target(numemu_report_libraries
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${report_source} -DBINARY=${report_binary} -P ${PROJECT_SOURCE_DIR}/cmake/report_libraries.cmake
  BYPRODUCTS ${report_binary}/libraries.js
  COMMENT "Checking the report's charting libraries" VERBATIM)

add_custom_command(OUTPUT ${report_assets}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${report_source} -DBINARY=${report_binary} -P ${PROJECT_SOURCE_DIR}/cmake/report_assets.cmake
  DEPENDS ${report_binary}/libraries.js ${report_charts} ${report_scripts} ${report_source}/page/page.html ${report_source}/page/report.css
          ${PROJECT_SOURCE_DIR}/cmake/report_assets.cmake
  COMMENT "Embedding the report's page" VERBATIM)

target_sources(numemu_sweeps PRIVATE ${report_assets})
add_dependencies(numemu_sweeps numemu_report_libraries)
target_link_libraries(numemu_sweeps PRIVATE SQLite::SQLite3)

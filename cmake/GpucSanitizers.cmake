# GPUC_SANITIZE: what the whole build is watched by. See test/README.md.
set(GPUC_SANITIZE "" CACHE STRING "Sanitizers for the whole build: 'address,undefined', 'thread', or empty for none")
set_property(CACHE GPUC_SANITIZE PROPERTY STRINGS "" "address,undefined" "thread")

if(GPUC_SANITIZE STREQUAL "")
  return()
endif()
if(NOT GPUC_SANITIZE MATCHES "^(address,undefined|thread)$")
  message(FATAL_ERROR "GPUC_SANITIZE is '${GPUC_SANITIZE}', but must be 'address,undefined', 'thread', or empty for none")
endif()
if(GPUC_SANITIZE STREQUAL "thread" AND GPUC_BUILD_FUZZERS)
  message(FATAL_ERROR "GPUC_SANITIZE is 'thread', but GPUC_BUILD_FUZZERS brings AddressSanitizer, which excludes it: choose one")
endif()

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "-fsanitize=${GPUC_SANITIZE}")
set(CMAKE_REQUIRED_LINK_OPTIONS "-fsanitize=${GPUC_SANITIZE}")
check_cxx_source_compiles("int main() {}" GPUC_HAS_SANITIZERS)
unset(CMAKE_REQUIRED_FLAGS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(NOT GPUC_HAS_SANITIZERS)
  message(FATAL_ERROR "GPUC_SANITIZE=${GPUC_SANITIZE} needs a compiler with its sanitizer runtime: run scripts/setup (libclang-rt-22-dev)")
endif()

# Without the optimizer's last efforts it builds in half the time and reports lines that can be recognised. The first
# finding ends the process, so that no test passes over it.
add_compile_options(-fsanitize=${GPUC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -gline-tables-only)
add_link_options(-fsanitize=${GPUC_SANITIZE})

# The object is named by its content, so that all is linked again when that changes.
set(source "${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cpp")
file(MD5 "${source}" hash)
set(object "${PROJECT_BINARY_DIR}/sanitizer_options-${hash}.o")
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -fPIC -c "${source}" -o "${object}" COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
add_link_options("${object}")

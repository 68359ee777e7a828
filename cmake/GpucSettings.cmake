# What holds for every target: the language, the warnings, where binaries lie.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# What a program is made of is compiled like a library, so that both can use one precompiled header.
set(CMAKE_C_COMPILE_OPTIONS_PIE "${CMAKE_C_COMPILE_OPTIONS_PIC}")
set(CMAKE_CXX_COMPILE_OPTIONS_PIE "${CMAKE_CXX_COMPILE_OPTIONS_PIC}")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

find_program(GPUC_CCACHE ccache)
if(GPUC_CCACHE)
  # A precompiled header is found again only if its macros and time stamps are not compared. What a file was made of is read
  # from the compiler's list and not from a second run of the preprocessor, and no large header is hashed twice: otherwise
  # the cache costs as much as the compiler while it is empty.
  set(GPUC_CCACHE_COMMAND ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_INODECACHE=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${GPUC_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GPUC_CCACHE_COMMAND})
  set(CMAKE_C_COMPILER_LAUNCHER ${GPUC_CCACHE_COMMAND})
endif()

# Bits must not depend on what a compiler may contract or reassociate: see docs/design.md, "Numbers".
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Werror=return-type -Werror=unused-result -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  add_link_options(-fuse-ld=lld)
endif()

# What is moved to systems that may have none of this: of each library its archive, and of that what is called.
if(GPUC_STATIC)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "GPUC_STATIC needs Clang and lld, which takes archives in any order: pass -DCMAKE_CXX_COMPILER=clang++-22")
  endif()
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections -Wl,--icf=safe)
endif()

if(GPUC_BUILD_FUZZERS)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_cxx_source_compiles("extern \"C\" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }" GPUC_HAS_FUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT GPUC_HAS_FUZZER)
    message(FATAL_ERROR "GPUC_BUILD_FUZZERS needs a Clang with its fuzzer runtime (libclang-rt-dev of its version)")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address)
endif()
include(GpucSanitizers)

# Sources and generated headers are named from the root: #include "runtime/base/status.h".
include_directories("${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")

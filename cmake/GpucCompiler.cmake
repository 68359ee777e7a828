# MLIR and LLVM for what compiles; nothing under runtime/ or passes/placement/ sees this.
if(NOT MLIR_DIR)
  find_program(GPUC_LLVM_CONFIG NAMES llvm-config-22 llvm-config)
  if(GPUC_LLVM_CONFIG)
    execute_process(COMMAND ${GPUC_LLVM_CONFIG} --prefix
                    OUTPUT_VARIABLE GPUC_LLVM_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
find_package(MLIR CONFIG QUIET PATHS "${GPUC_LLVM_PREFIX}")
if(NOT MLIR_FOUND OR NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "MLIR 22 not found: run scripts/setup, pass -DMLIR_DIR=…, or build the runtime alone with -DGPUC_BUILD_COMPILER=OFF")
endif()

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
set(LLVM_LINK_LLVM_DYLIB ON)
set(MLIR_LINK_MLIR_DYLIB ON)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(GPUC_LLVM_BIN "${LLVM_TOOLS_BINARY_DIR}")

# One precompiled header serves the whole compiler and its tests: reading MLIR takes longer than all else that a file costs.
gpuc_precompiled_headers(gpuc_compiler_headers "${PROJECT_SOURCE_DIR}/cmake/CompilerHeaders.h")
target_include_directories(gpuc_compiler_headers SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
add_dependencies(gpuc_compiler_headers GpucOpsIncGen GpucInterfacesIncGen)

# gpuc_uses_mlir(target): its files include MLIR.
function(gpuc_uses_mlir target)
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_precompile_headers(${target} REUSE_FROM gpuc_compiler_headers)
endfunction()

# gpuc_compiler_library(NAME file.cpp … [DEPENDS target …] [LIBS library …])
function(gpuc_compiler_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  gpuc_uses_mlir(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# gpuc_tablegen(target source.td  output -generator-flag …): each output from one .td, bundled as one target.
function(gpuc_tablegen target source)
  set(LLVM_TARGET_DEFINITIONS ${source})
  set(pairs ${ARGN})
  while(pairs)
    list(POP_FRONT pairs output generator)
    separate_arguments(generator)
    mlir_tablegen(${output} ${generator} EXTRA_INCLUDES "${PROJECT_SOURCE_DIR}" ${MLIR_INCLUDE_DIRS})
  endwhile()
  add_public_tablegen_target(${target})
endfunction()

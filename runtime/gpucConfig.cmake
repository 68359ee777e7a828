# find_package(gpuc): the targets gpuc::runtime; gpuc::weights, variables in and out of safetensors; gpuc::c for other languages.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(ZLIB)
include("${CMAKE_CURRENT_LIST_DIR}/gpucTargets.cmake")

# COMPONENTS builder: gpuc::builder, models in C++, and gpuc::zoo; with MLIR's and LLVM's shared libraries.
foreach(component ${gpuc_FIND_COMPONENTS})
  if(component STREQUAL "builder" AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/gpucBuilderTargets.cmake")
    include("${CMAKE_CURRENT_LIST_DIR}/gpucBuilderTargets.cmake")
    set(gpuc_${component}_FOUND TRUE)
  elseif(gpuc_FIND_REQUIRED_${component})
    set(gpuc_FOUND FALSE)
    set(gpuc_NOT_FOUND_MESSAGE "component '${component}' is not installed: there is builder, where gpuc was built with its compiler")
  endif()
endforeach()

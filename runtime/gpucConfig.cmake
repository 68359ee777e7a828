# find_package(gpuc): the targets gpuc::runtime; gpuc::weights, variables in and out of safetensors; gpuc::c for other languages.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(ZLIB)
include("${CMAKE_CURRENT_LIST_DIR}/gpucTargets.cmake")

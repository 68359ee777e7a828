# find_package(gpuc): the targets gpuc::runtime; gpuc::weights, variables in and out of safetensors; gpuc::c for other languages.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(ZLIB)
include("${CMAKE_CURRENT_LIST_DIR}/gpucTargets.cmake")

# COMPONENTS, each with what it takes:
# trainer: gpuc::trainer, the training loop and what feeds it, and gpuc::data;
# builder: gpuc::builder, models in C++, and gpuc::zoo, with MLIR's and LLVM's shared libraries;
# compiler: gpuc::compiler, from a model's text to a plan. It needs the files of the builder as well.
set(gpuc_files_trainer Trainer)
set(gpuc_files_builder Builder)
set(gpuc_files_compiler Builder Compiler)
if("trainer" IN_LIST gpuc_FIND_COMPONENTS)
  find_dependency(PNG)
endif()
foreach(component ${gpuc_FIND_COMPONENTS})
  set(gpuc_${component}_FOUND ${gpuc_files_${component}})
  foreach(file ${gpuc_files_${component}})
    if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/gpuc${file}Targets.cmake")
      include("${CMAKE_CURRENT_LIST_DIR}/gpuc${file}Targets.cmake")
    else()
      set(gpuc_${component}_FOUND FALSE)
    endif()
  endforeach()
  if(gpuc_FIND_REQUIRED_${component} AND NOT gpuc_${component}_FOUND)
    set(gpuc_FOUND FALSE)
    set(gpuc_NOT_FOUND_MESSAGE "component '${component}' is not installed: there are trainer and, where gpuc was built with its compiler, builder and compiler")
  endif()
endforeach()

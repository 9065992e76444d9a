# Finds an installed PyTorch by its headers and libraries alone.
#
# PyTorch's own CMake package asks for a full CUDA toolkit when the wheel was built with CUDA. None of
# it is needed to compile against the device-generic headers, so this module does without.
#
# Input (optional)
#   HEADWATER_TORCH_DIR    folder of the torch package, or of an unpacked LibTorch archive
#   Python_EXECUTABLE      interpreter asked for its torch package otherwise; torch is not imported
# Output
#   HeadwaterTorch_VERSION "2.13.0"
#   HeadwaterTorch::torch  headers and libraries for C++ programs
#   HeadwaterTorch::python the same plus libtorch_python and the pybind11 headers PyTorch carries

set(_torch_dir "${HEADWATER_TORCH_DIR}")
if(NOT _torch_dir)
  find_package(Python COMPONENTS Interpreter QUIET)
  if(Python_EXECUTABLE)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c
        "import importlib.util as u; s = u.find_spec('torch'); print(list(s.submodule_search_locations)[0] if s else '', end='')"
      OUTPUT_VARIABLE _torch_dir ERROR_QUIET)
  endif()
endif()

# A wheel keeps everything in its own folder; a distribution's package uses the system's folders.
macro(_headwater_torch_library variable name)
  find_library(${variable} ${name} PATHS "${_torch_dir}/lib" NO_DEFAULT_PATH)
  find_library(${variable} ${name})
  mark_as_advanced(${variable})
endmacro()

# A cached answer for another torch must not survive a change of interpreter or folder.
if(NOT "${_torch_dir}" STREQUAL "${_HeadwaterTorch_DIR_SEEN}")
  foreach(_part INCLUDE_DIR C10 TORCH TORCH_CPU TORCH_PYTHON)
    unset(HeadwaterTorch_${_part} CACHE)
  endforeach()
endif()
set(_HeadwaterTorch_DIR_SEEN "${_torch_dir}" CACHE INTERNAL "")

find_path(HeadwaterTorch_INCLUDE_DIR ATen/ATen.h PATHS "${_torch_dir}/include" NO_DEFAULT_PATH)
find_path(HeadwaterTorch_INCLUDE_DIR ATen/ATen.h)
mark_as_advanced(HeadwaterTorch_INCLUDE_DIR)
_headwater_torch_library(HeadwaterTorch_C10 c10)
_headwater_torch_library(HeadwaterTorch_TORCH torch)
_headwater_torch_library(HeadwaterTorch_TORCH_CPU torch_cpu)
_headwater_torch_library(HeadwaterTorch_TORCH_PYTHON torch_python)

set(HeadwaterTorch_VERSION "")
foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  set(_header "${HeadwaterTorch_INCLUDE_DIR}/${_header}")
  if(NOT HeadwaterTorch_VERSION AND EXISTS "${_header}")
    file(STRINGS "${_header}" _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
    list(TRANSFORM _lines REPLACE ".* ([0-9]+).*" "\\1")
    list(JOIN _lines "." HeadwaterTorch_VERSION)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HeadwaterTorch
  REQUIRED_VARS HeadwaterTorch_INCLUDE_DIR HeadwaterTorch_C10 HeadwaterTorch_TORCH
                HeadwaterTorch_TORCH_CPU
  VERSION_VAR HeadwaterTorch_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE
    "install torch for ${Python_EXECUTABLE}, or set HEADWATER_TORCH_DIR to its folder")

if(HeadwaterTorch_FOUND AND NOT TARGET HeadwaterTorch::torch)
  find_package(Threads REQUIRED)
  add_library(HeadwaterTorch::torch INTERFACE IMPORTED)
  set_target_properties(HeadwaterTorch::torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${HeadwaterTorch_INCLUDE_DIR};${HeadwaterTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
      "${HeadwaterTorch_INCLUDE_DIR};${HeadwaterTorch_INCLUDE_DIR}/torch/csrc/api/include"
    # The libraries are built with NDEBUG, and some of their inline functions depend on it.
    INTERFACE_COMPILE_DEFINITIONS "NDEBUG;_GLIBCXX_USE_CXX11_ABI=1")
  # What the CUDA libraries behind PyTorch's own libraries lack is no matter for our link.
  target_link_options(HeadwaterTorch::torch INTERFACE -Wl,--allow-shlib-undefined)
  # libtorch has no symbols of its own; dropped as unneeded it would take the CUDA backend with it.
  target_link_libraries(HeadwaterTorch::torch INTERFACE
    "${HeadwaterTorch_C10}" "${HeadwaterTorch_TORCH_CPU}"
    "-Wl,--no-as-needed,${HeadwaterTorch_TORCH},--as-needed" Threads::Threads)

  if(HeadwaterTorch_TORCH_PYTHON)
    add_library(HeadwaterTorch::python INTERFACE IMPORTED)
    target_link_libraries(HeadwaterTorch::python INTERFACE
      HeadwaterTorch::torch "${HeadwaterTorch_TORCH_PYTHON}")
  endif()
endif()

# Compiles a kernel source for every device this program serves and embeds the results.
#
#   bimetal_kernels(memory_pattern SOURCE checks/memory_pattern.kernel.cc)
#
# makes the library `bimetal::module_memory_pattern` with the function
# `const ModuleImage& MemoryPatternModule()` (namespace bimetal::kernels). The source is compiled
#   - by nvcc into one cubin for each of BIMETAL_CUDA_ARCHS and PTX for each of BIMETAL_CUDA_PTX (the
#     oldest, for what lies between, and the newest, for what comes), packed into one fatbin,
#   - by clang into one bare code object for each of BIMETAL_HIP_ARCHS,
#   - by the host compiler, at -O2 in every build, for the host back end.
# Device code is kept in BIMETAL_KERNEL_CACHE (cached_kernel.py), as ccache keeps the host's.
# A compiler that is missing stops the configuration: a program must not lack a vendor unnoticed.
include_guard(GLOBAL)

option(BIMETAL_CUDA "Compile the kernels for NVIDIA devices" ON)
option(BIMETAL_HIP "Compile the kernels for AMD devices" ON)
set(BIMETAL_CUDA_ARCHS "75;80;86;89;90;100" CACHE STRING "Compute capabilities, without the dot")
set(BIMETAL_CUDA_PTX "75;100" CACHE STRING "Compute capabilities that get PTX")
set(BIMETAL_HIP_ARCHS "gfx90a;gfx942;gfx950;gfx1100" CACHE STRING
    "AMD architectures; those that the compiler does not know are left out, and said")

if(DEFINED ENV{BIMETAL_CACHE})
  set(cache "$ENV{BIMETAL_CACHE}")
else()
  set(cache "$ENV{HOME}/.cache/bimetal")
endif()
set(BIMETAL_KERNEL_CACHE "${cache}/kernels" CACHE PATH "Where compiled device code is kept; empty: nowhere")
find_program(BIMETAL_PYTHON python3 REQUIRED)

# The start of a compiler's command line that asks the cache first.
function(_bimetal_cached source output result)
  set(${result} "${BIMETAL_PYTHON}" "${PROJECT_SOURCE_DIR}/cmake/cached_kernel.py"
      "--cache=${BIMETAL_KERNEL_CACHE}" --root "${PROJECT_SOURCE_DIR}" --source "${source}"
      --output "${output}" -- PARENT_SCOPE)
endfunction()

if(BIMETAL_CUDA)
  if(NOT BIMETAL_NVCC AND DEFINED ENV{BIMETAL_NVCC})
    set(BIMETAL_NVCC "$ENV{BIMETAL_NVCC}")
  endif()
  if(NOT BIMETAL_NVCC)
    file(GLOB candidates "${cache}/cuda-*/nvidia/cu*/bin/nvcc"
         "${cache}/cuda-*/lib/python*/site-packages/nvidia/cu*/bin/nvcc")
    find_program(BIMETAL_NVCC_FOUND NAMES nvcc HINTS /usr/local/cuda/bin)
    list(APPEND candidates ${BIMETAL_NVCC_FOUND})
    foreach(candidate IN LISTS candidates)
      # An install that was cut short holds an nvcc without its parts.
      get_filename_component(bin "${candidate}" DIRECTORY)
      if(EXISTS "${candidate}" AND EXISTS "${bin}/fatbinary" AND EXISTS "${bin}/ptxas")
        set(BIMETAL_NVCC "${candidate}")
        break()
      endif()
    endforeach()
  endif()
  if(NOT BIMETAL_NVCC OR NOT EXISTS "${BIMETAL_NVCC}")
    message(FATAL_ERROR "no nvcc found (BIMETAL_NVCC='${BIMETAL_NVCC}'). Run dev/setup, or name one "
      "with -DBIMETAL_NVCC=PATH, or build without NVIDIA kernels with -DBIMETAL_CUDA=OFF.")
  endif()
  set(BIMETAL_NVCC "${BIMETAL_NVCC}" CACHE FILEPATH "CUDA compiler" FORCE)
  foreach(arch IN LISTS BIMETAL_CUDA_ARCHS)
    message(STATUS "Kernels for CUDA: sm_${arch} with ${BIMETAL_NVCC}")
  endforeach()
  foreach(arch IN LISTS BIMETAL_CUDA_PTX)
    message(STATUS "Kernels for CUDA: compute_${arch} (PTX) with ${BIMETAL_NVCC}")
  endforeach()
else()
  message(STATUS "Kernels for CUDA: off (BIMETAL_CUDA=OFF)")
endif()

if(BIMETAL_HIP)
  find_program(BIMETAL_HIP_CLANG NAMES clang++-19 clang-19 DOC "Compiler of the AMD kernels")
  find_program(BIMETAL_HIP_LLD NAMES ld.lld-19 lld-19 DOC "Linker of the AMD kernels")
  if(NOT BIMETAL_HIP_CLANG OR NOT BIMETAL_HIP_LLD)
    message(FATAL_ERROR "no clang-19 with lld-19 found for the AMD kernels. Install the packages "
      "clang-19 and lld-19, or name them with -DBIMETAL_HIP_CLANG=PATH -DBIMETAL_HIP_LLD=PATH, or "
      "build without AMD kernels with -DBIMETAL_HIP=OFF.")
  endif()
  # A compiler that does not know an architecture builds for the others, and says so.
  set(built)
  foreach(arch IN LISTS BIMETAL_HIP_ARCHS)
    execute_process(COMMAND "${BIMETAL_HIP_CLANG}" -x hip --cuda-device-only -nogpuinc -nogpulib
      --offload-arch=${arch} -fsyntax-only /dev/null
      OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0)
      list(APPEND built ${arch})
      message(STATUS "Kernels for HIP: ${arch} with ${BIMETAL_HIP_CLANG}")
    else()
      message(STATUS "Kernels for HIP: ${arch} NOT BUILT: ${BIMETAL_HIP_CLANG} does not know it")
    endif()
  endforeach()
  set(BIMETAL_HIP_BUILT "${built}" CACHE INTERNAL "AMD architectures that are built")
else()
  message(STATUS "Kernels for HIP: off (BIMETAL_HIP=OFF)")
endif()

# One nvcc run: `form` is cubin or ptx.
function(_bimetal_cuda_object source stem arch form output)
  set(label "sm_${arch}")
  # Hopper's warp-group instructions belong to the variant of that one architecture.
  if(arch STREQUAL "90" AND form STREQUAL "cubin")
    set(arch 90a)
  endif()
  if(form STREQUAL "ptx")
    set(label "compute_${arch} (PTX)")
  endif()
  _bimetal_cached("${source}" "${output}" cached)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${cached} "${BIMETAL_NVCC}" -x cu -std=c++20 -O3 -${form} -arch=compute_${arch}
            $<$<STREQUAL:${form},cubin>:-code=sm_${arch}> -I "${PROJECT_SOURCE_DIR}"
            -MD -MF "${output}.d" -MT "${output}" -o "${output}" "${source}"
    DEPENDS "${source}" DEPFILE "${output}.d"
    COMMENT "Kernel ${stem}: CUDA ${label}" VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

function(_bimetal_hip_object source stem arch output)
  _bimetal_cached("${source}" "${output}" cached)
  add_custom_command(
    OUTPUT "${output}"
    # No header, device library or unit id of the host: one source gives one object, byte for byte.
    COMMAND ${cached} "${BIMETAL_HIP_CLANG}" -x hip --cuda-device-only -nogpuinc -nogpulib
            --no-gpu-bundle-output --offload-arch=${arch} -std=c++20 -O2 -Wall -Wextra -Werror
            -fuse-cuid=none -I "${PROJECT_SOURCE_DIR}"
            -MD -MF "${output}.d" -MT "${output}" -o "${output}" "${source}"
    DEPENDS "${source}" DEPFILE "${output}.d"
    COMMENT "Kernel ${stem}: HIP ${arch}" VERBATIM)
endfunction()

# bimetal_kernels(NAME SOURCE file): see the top of this file. NAME is snake_case and the name that
# the source gives to BM_MODULE.
function(bimetal_kernels name)
  cmake_parse_arguments(ARG "" "SOURCE" "" ${ARGN})
  get_filename_component(source "${ARG_SOURCE}" ABSOLUTE)
  set(dir "${CMAKE_BINARY_DIR}/kernels/${name}")
  file(MAKE_DIRECTORY "${dir}")

  string(REGEX MATCHALL "[^_]+" words "${name}")
  set(MODULE_FUNCTION "")
  foreach(word IN LISTS words)
    string(SUBSTRING "${word}" 0 1 first)
    string(SUBSTRING "${word}" 1 -1 rest)
    string(TOUPPER "${first}" first)
    string(APPEND MODULE_FUNCTION "${first}${rest}")
  endforeach()
  string(APPEND MODULE_FUNCTION "Module")
  set(MODULE_NAME "${name}")

  set(objects)
  set(EMBEDS "")
  set(CUDA_ARCHS "")
  set(CUDA_FATBIN "{}")
  if(BIMETAL_CUDA)
    set(parts)
    set(images)
    foreach(arch IN LISTS BIMETAL_CUDA_ARCHS)
      _bimetal_cuda_object("${source}" ${name} ${arch} cubin "${dir}/sm_${arch}.cubin")
      list(APPEND parts "${dir}/sm_${arch}.cubin")
      string(REGEX REPLACE "^90$" "90a" variant "${arch}")
      list(APPEND images "--image3=kind=elf,sm=${variant},file=${dir}/sm_${arch}.cubin")
      string(APPEND CUDA_ARCHS "\"sm_${arch}\", ")
    endforeach()
    foreach(arch IN LISTS BIMETAL_CUDA_PTX)
      _bimetal_cuda_object("${source}" ${name} ${arch} ptx "${dir}/compute_${arch}.ptx")
      list(APPEND parts "${dir}/compute_${arch}.ptx")
      list(APPEND images "--image3=kind=ptx,sm=${arch},file=${dir}/compute_${arch}.ptx")
      string(APPEND CUDA_ARCHS "\"compute_${arch}\", ")
    endforeach()
    set(fatbin "${dir}/cuda.fatbin")
    get_filename_component(nvcc_bin "${BIMETAL_NVCC}" DIRECTORY)
    add_custom_command(OUTPUT "${fatbin}"
      COMMAND "${nvcc_bin}/fatbinary" -64 "--create=${fatbin}" ${images}
      DEPENDS ${parts} COMMENT "Kernel ${name}: CUDA fatbin" VERBATIM)
    list(APPEND objects "${fatbin}")
    string(APPEND EMBEDS "BIMETAL_EMBED(${name}_cuda, \"${fatbin}\")\n")
    set(CUDA_FATBIN "Bytes(${name}_cuda_begin, ${name}_cuda_end)")
  endif()

  set(HIP_IMAGES "")
  if(BIMETAL_HIP)
    foreach(arch IN LISTS BIMETAL_HIP_BUILT)
      set(object "${dir}/${arch}.co")
      _bimetal_hip_object("${source}" ${name} ${arch} "${object}")
      list(APPEND objects "${object}")
      string(APPEND EMBEDS "BIMETAL_EMBED(${name}_${arch}, \"${object}\")\n")
      string(APPEND HIP_IMAGES
        "\n      HipImage{\"${arch}\", Bytes(${name}_${arch}_begin, ${name}_${arch}_end)},")
    endforeach()
  endif()

  configure_file("${PROJECT_SOURCE_DIR}/cmake/module.cc.in" "${dir}/module.cc" @ONLY)
  set_source_files_properties("${dir}/module.cc" PROPERTIES OBJECT_DEPENDS "${objects}")
  set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "-O2")
  bimetal_library(module_${name} SOURCES "${dir}/module.cc" "${source}")
endfunction()

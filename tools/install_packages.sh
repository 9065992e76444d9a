#!/usr/bin/env bash
# Installs the Debian packages that building (and checking) needs, and only those that are missing.
# Usage: install_packages.sh PYTHON build|check
set -euo pipefail

python=$1
goal=$2
missing=()

need() { # need PACKAGE COMMAND...: the package is missing when the command fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

have_header() {
  echo "#include <$1>" | "${CXX:-g++}" -x c++ -E - >/dev/null
}

need g++ command -v "${CXX:-g++}"
need python3 command -v "$python"
if command -v "$python" >/dev/null; then
  need python3-venv "$python" -c 'import ensurepip, venv'
  need python3-dev "$python" -c \
    'import pathlib, sysconfig; (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").stat()'
fi
need libgtest-dev have_header gtest/gtest.h
need libgmock-dev have_header gmock/gmock.h
need libbenchmark-dev have_header benchmark/benchmark.h
need liburing-dev have_header liburing.h
if [[ $goal == check ]]; then
  need clang command -v clang++
  need clang-tidy command -v clang-tidy
fi

if ((${#missing[@]} > 0)); then
  as_root=()
  if ((EUID != 0)); then
    as_root=(sudo)
  fi
  if ! command -v apt-get >/dev/null || ! command -v "${as_root[0]:-true}" >/dev/null; then
    echo "Missing packages: ${missing[*]}. Install them as an administrator, then repeat." >&2
    exit 1
  fi
  echo "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
fi

if ! echo '#include <version>
#if __cplusplus < 202002L || (defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12)
#error too old
#endif' | "${CXX:-g++}" -std=c++20 -x c++ -E - >/dev/null 2>&1; then
  echo "C++ compiler too old: ${CXX:-g++}. Headwater needs g++ 12 or clang 14; set CXX." >&2
  exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "Python too old: $("$python" --version). Headwater needs 3.10; set PYTHON." >&2
  exit 1
fi

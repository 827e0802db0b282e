# Sets up the project's own environment in .venv, once. Sourced by ./discreet and ./test.
#   ensure_environment "" | test | bench …   installs the package in place, with what users get from `./discreet`, and that extra
# A stamp holds the pyproject.toml that was installed; it is written last, so an interrupted set-up starts again.

DESKTOP=files,plot,sklearn  # extras that every checkout has; Spark is large, and few need it

find_python() {
  for candidate in ${DISCREET_PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' >/dev/null 2>&1; then
      command -v "$candidate"
      return 0
    fi
  done
  echo "discreet needs Python 3.11.5 or newer, and found none. Install one, or point DISCREET_PYTHON at it." >&2
  return 1
}

ensure_environment() {
  extra=$1
  stamp=$root/.venv/installed-${extra:-core}.toml
  cmp -s "$root/pyproject.toml" "$stamp" && return 0
  python=$(find_python) || return 1
  # One set-up at a time: mkdir is atomic everywhere; a lock older than 20 minutes was left by a crash.
  lock=$root/.venv.lock
  while ! mkdir "$lock" 2>/dev/null; do
    find "$lock" -maxdepth 0 -mmin +20 -exec rmdir {} \; 2>/dev/null
    sleep 1
  done
  trap 'stop_saying; rmdir "$lock" 2>/dev/null' EXIT
  trap 'exit 130' INT TERM
  say_progress
  install_into_environment "$python" "$extra" || {
    stop_saying
    echo "Setting up failed; the lines above say why. Run the command again when it is mended." >&2
    return 1
  }
  stop_saying
  cp "$root/pyproject.toml" "$stamp"
  rmdir "$lock"
  trap - EXIT INT TERM
}

# What is there so far, on one line that is written again every second; in a log, one line at the beginning.
say_progress() {
  what="Setting up the environment in $root/.venv (once, about a minute)"
  if [ ! -t 2 ]; then
    echo "$what …" >&2
    return
  fi
  (
    trap 'exit 0' TERM
    begun=$(date +%s)
    while :; do
      megabytes=$(du -sm "$root/.venv" 2>/dev/null | cut -f 1)
      printf '\r\033[K%s: %s MB in %s s …' "$what" "${megabytes:-0}" "$(($(date +%s) - begun))" >&2
      sleep 1
    done
  ) &
  saying=$!
}

stop_saying() {
  [ -n "${saying:-}" ] || return 0
  kill "$saying" 2>/dev/null
  wait "$saying" 2>/dev/null
  saying=
  printf '\r\033[K' >&2
}

install_into_environment() {
  target="$root[$DESKTOP${2:+,$2}]"
  if command -v uv >/dev/null 2>&1; then
    [ -x "$root/.venv/bin/python" ] || uv venv --quiet --python "$1" "$root/.venv" || return 1
    uv pip install --quiet --python "$root/.venv/bin/python" --editable "$target"
  else
    # pip is checked for by itself: an interrupted `venv` leaves a python without one.
    "$root/.venv/bin/python" -m pip --version >/dev/null 2>&1 || "$1" -m venv --clear "$root/.venv" || return 1
    # Quiet twice: errors are shown, warnings about the user's own machine are not.
    "$root/.venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --editable "$target"
  fi
}

# An environment beside the first one, for the tests alone: `.venv-lowest` with the lowest versions that pyproject.toml allows
# (on the oldest Python that there is), or `.venv-3.13` with what pip takes on that Python.
ensure_other_environment() {
  other=$root/.venv-$1
  cmp -s "$root/pyproject.toml" "$other/installed.toml" && return 0
  case $1 in
    lowest) python=$(DISCREET_PYTHON="${DISCREET_PYTHON:-} python3.11 python3.12" find_python) || return 1 ;;
    *) python=$(command -v "python$1") && "$python" --version >/dev/null 2>&1 || {
      echo "There is no Python $1 here." >&2
      return 1
    } ;;
  esac
  echo "Setting up the environment in $other (once, some minutes) …" >&2
  "$python" -m venv --clear "$other" || return 1
  pip="$other/bin/python -m pip install --quiet --quiet --disable-pip-version-check"
  if [ "$1" = lowest ]; then
    "$other/bin/python" "$root/tools/lowest.py" "$root" >"$other/requirements.txt" || return 1
    $pip --requirement "$other/requirements.txt" && $pip --no-deps --editable "$root" || return 1
  else
    $pip --editable "$root[test]" || return 1
  fi
  cp "$root/pyproject.toml" "$other/installed.toml"
}

# The pages are tested in a real Chromium, from Debian's packages. Where it may not be installed, those tests are skipped loudly.
ensure_browser() {
  command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 && return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing chromium for the tests of the pages (once, about a minute) …" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 && return 0
  fi
  echo "There is no chromium with chromedriver here and it cannot be installed: the tests of the pages will be skipped." >&2
}

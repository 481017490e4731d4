# shellcheck shell=bash
# Debian packages of dev/packages.txt.

package_list() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$BM_ROOT/dev/packages.txt"; }

packages_missing() {
  local wanted
  mapfile -t wanted < <(package_list)
  # shellcheck disable=SC2016  # the dollar belongs to dpkg-query's format
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort) \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
      sed -n 's/^installed //p' | sort)
}

setup_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "this machine has no apt" \
      "Bimetal's tools are made for Debian 12; elsewhere install what dev/packages.txt names" \
      "and run the other parts: dev/setup --tools --cuda"
  fi
  mapfile -t missing < <(packages_missing)
  [ ${#missing[@]} -gt 0 ] || return 0
  need_root "installing Debian packages (${missing[*]})"
  step "reading the package lists" "$BM_CACHE/log/apt-update.log" apt-get update
  step "installing ${#missing[@]} Debian packages" "$BM_CACHE/log/apt-install.log" \
    install_packages "${missing[@]}"
}

# Some packages (prometheus) would start a service of their own; a policy file forbids that.
install_packages() {
  local policy=/usr/sbin/policy-rc.d made="" rc=0
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    made=1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" || rc=$?
  [ -z "$made" ] || rm -f $policy
  return $rc
}

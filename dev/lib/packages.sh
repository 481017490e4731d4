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

# Some packages (prometheus) would start a service of their own; a policy file of ours forbids that
# for the while, unless the machine has its own. What an earlier, interrupted run left is mended.
BM_POLICY=/usr/sbin/policy-rc.d
BM_POLICY_MARK='# made by dev/setup for the time of an installation'

install_packages() {
  drop_policy
  trap drop_policy EXIT
  [ -e $BM_POLICY ] || {
    printf '#!/bin/sh\n%s\nexit 101\n' "$BM_POLICY_MARK" >$BM_POLICY
    chmod 755 $BM_POLICY
  }
  dpkg --configure -a
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

drop_policy() {
  if grep -qsxF "$BM_POLICY_MARK" $BM_POLICY; then rm -f $BM_POLICY; fi
}

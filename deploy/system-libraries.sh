#!/bin/sh
# The one library of the system that the site uses: Pango, for reports as PDF. Installs it where it
# may; else says what is missing. Without it everything works but report.pdf.
set -u
packages="libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"
has() { ls /usr/lib/*/"$1" /usr/lib/"$1" /usr/lib64/"$1" /opt/homebrew/lib/"$1" 2>/dev/null | grep -q .; }
has 'libpangoft2-1.0.so.0' && has 'libharfbuzz-subset.so.0' && exit 0

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"
if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
  echo "Installing Pango, for reports as PDF."
  $as_root apt-get update -qq >/dev/null 2>&1
  # shellcheck disable=SC2086 (a list)
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null && exit 0
fi
echo "Pango is missing: sudo apt-get install $packages. Without it there is no report.pdf."
exit 0

#!/usr/bin/env bash
# Installs what the full test suite needs beside Python, where it may; else says what is missing.
# With --has-postgres: only tells, by its exit code, whether PostgreSQL is there.
set -u

has_postgres() { compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null; }
has_redis() { command -v redis-server >/dev/null; }
has_nginx() { command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; }
has_chromium() {
  has_light_chromium || command -v chromium >/dev/null
}
# Tests run with Debian's chromium, too, and take several times as long in its windows.
has_light_chromium() {
  command -v chromium-headless-shell >/dev/null || command -v google-chrome >/dev/null \
    || compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}/chromium-*" >/dev/null
}

if [ "${1:-}" = --has-postgres ]; then has_postgres; exit; fi

as_root=()
if [ "$(id -u)" != 0 ]; then as_root=(sudo -n); fi
may_install() { command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }
apt_install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" >/dev/null
}
# Ubuntu's chromium is a snap, which cannot run in containers; there playwright brings its own.
install_chromium() {
  if [ "$(. /etc/os-release; echo "$ID")" = ubuntu ]; then
    .venv/bin/python -m playwright install --with-deps chromium >/dev/null
  else
    apt_install chromium-headless-shell fonts-dejavu-core \
      || has_chromium || apt_install chromium fonts-dejavu-core
  fi
}

missing=()
has_postgres || missing+=(postgresql)
has_redis || missing+=(redis-server)
has_nginx || missing+=(nginx)
has_light_chromium || missing+=(chromium)
[ ${#missing[@]} -eq 0 ] && exit 0

if may_install; then
  echo "Installing ${missing[*]} for the tests."
  "${as_root[@]}" apt-get update -qq -o Acquire::Retries=3
  has_postgres || apt_install postgresql
  has_redis || apt_install redis-server
  has_nginx || apt_install nginx
  has_light_chromium || install_chromium
fi

has_postgres || echo "PostgreSQL is missing: sudo apt-get install postgresql. Tests on it are skipped."
has_redis || echo "Redis is missing: sudo apt-get install redis-server. Tests on it are skipped."
has_nginx || echo "nginx is missing: sudo apt-get install nginx. Tests of the proxy are skipped."
has_chromium || echo "Chromium is missing: sudo apt-get install chromium. Browser tests are skipped."
exit 0

#!/usr/bin/env bash
# A private Postfix that takes mail from this machine on PORT and relays all of
# it to SINK_PORT, with default settings otherwise: every message is synced to
# the disk before it is accepted. One line of JSON says that it is ready; it
# runs until its input ends.
#
#   bash benches/peers/postfix.sh PORT SINK_PORT
#
# It must be run as root, since Postfix must. Its queue lies where temporary
# files do (TMPDIR). Postfix is installed by apt if it is not there.
set -euo pipefail
port=${1:?the port to listen on} sink=${2:?the port to relay to}

if ! command -v postfix >/dev/null || ! command -v smtp-source >/dev/null; then
  echo "installing postfix" >&2
  debconf-set-selections <<<'postfix postfix/main_mailer_type select No configuration'
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q postfix >&2 ||
    { echo "postfix is needed: apt-get install postfix" >&2; exit 1; }
fi

work=$(mktemp -d -t outflow-postfix.XXXXXX)
stop() { postfix -c "$work/etc" stop >/dev/null 2>&1 || true; rm -rf "$work"; }
trap stop EXIT
mkdir "$work"/{etc,spool,lib,log}
chmod 755 "$work" "$work"/{etc,spool,log}
chown postfix "$work/lib"
cat >"$work/etc/main.cf" <<C
compatibility_level = 3.6
queue_directory = $work/spool
data_directory = $work/lib
maillog_file = $work/log/mail.log
maillog_file_prefixes = $work
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = postfix.example.org
mydestination =
mynetworks = 127.0.0.0/8
alias_maps =
local_transport = error:no local delivery
local_recipient_maps =
relayhost = [127.0.0.1]:$sink
smtpd_relay_restrictions = permit_mynetworks, reject
smtp_tls_security_level =
smtpd_tls_security_level = none
C
cat >"$work/etc/master.cf" <<C
127.0.0.1:$port inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
C
postfix -c "$work/etc" start >"$work/start" 2>&1 || { cat "$work/start" "$work"/log/* >&2; exit 1; }
for _ in $(seq 100); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  sleep 0.1
done
echo "{\"master\":$(tr -d ' \n' <"$work/spool/pid/master.pid")}"
cat >/dev/null

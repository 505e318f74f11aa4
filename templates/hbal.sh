# Commands that balance the cluster, written by gpolicy htools hbal.
# Create the file /tmp/stop-htools to stop before the next job.

set -e

check() {
  if [ -f /tmp/stop-htools ]; then
    echo 'Stop requested, exiting'
    exit 0
  fi
}

"""The environment variables that gpolicy reads."""

from __future__ import annotations

from typing import Final

VARIABLES: Final = {
    "GPOLICY_STATE": "Where verbs that need a cluster's state read it from, without `--state`: `ssh://master`,"
    " `snapshot:FILE` and so on. `check` and `test` read a cluster only with `--state`. A file of the repository cannot"
    " set it.",
    "GPOLICY_GANETI_VERSION": "Release of Ganeti, such as 3.1.1, by which nodes are judged for N+1. For"
    " `gpolicy htools` it goes before what the cluster says; for other verbs it counts where neither the cluster nor"
    " the policy says one. Default: 3.0, or for hail the release in `/var/lib/ganeti/ssconf_release_version`.",
    "GPOLICY_RAPI_USER": "User for Ganeti's remote API, together with GPOLICY_RAPI_PASSWORD. An option"
    " `--rapi-credentials` goes before them; without either, gpolicy looks into the netrc file.",
    "GPOLICY_RAPI_PASSWORD": "Password for Ganeti's remote API.",
    "GPOLICY_RAPI_HOSTS": "Hosts that user and password of the environment are for, as globs with commas between them:"
    ' clusters of gpolicy.toml with `credentials = "environment"` get them only if this names their host. With'
    " `environment:NAME` all three variables end in `_NAME`.",
    "GPOLICY_RAPI_CA": "File with the certificate (PEM) that `gpolicy htools` trusts RAPI by. Other verbs have the"
    " option `--rapi-ca`.",
    "SOURCE_DATE_EPOCH": "Seconds since 1970 that plans and pages show as the time when they were made.",
    "NETRC": "File with users and passwords by host. Default: `~/.netrc`.",
    "GANETI_ROOTDIR": "Root directory of a virtual cluster, as for Ganeti itself. `local:` reads config.data below it.",
    "GPOLICY_PAGER": "Program that shows text longer than the terminal, with its options; `cat` or nothing for none."
    " The option `--no-pager` switches it off. A file of the repository cannot set it.",
    "PAGER": "The pager without GPOLICY_PAGER. Default: `less -FRX`, if it is installed.",
    "NO_COLOR": "Any value: no colour on a terminal.",
    "TERM": "With `dumb`: no colour on a terminal, and no pager.",
    "PATH": "Where gpolicy looks for gnt-*, ssh and ssh-keygen. Relative directories do not count.",
    "XDG_RUNTIME_DIR": "Directory of the lock of `gpolicy apply` for users other than root.",
    "XDG_STATE_HOME": "The directory of that lock (in `gpolicy/`) without XDG_RUNTIME_DIR. Default: `~/.local/state`.",
    "HOME": "Where `~` is in the defaults above.",
    "GITHUB_ACTIONS": "With `true`: no line of output becomes a command to GitHub's runner.",
    "GITHUB_WORKSPACE": "Top of the checkout, from which reports for CI services name files.",
    "CI_PROJECT_DIR": "The same for GitLab.",
}
"""By name, in the order in which the pages show them."""

# bash completion of gpolicy. Load it with: eval "$(gpolicy completion bash)"

_gpolicy() {
    local current=${COMP_WORDS[COMP_CWORD]}
    [[ $current == [:=] ]] && current=
    mapfile -t COMPREPLY < <("$1" __complete bash "${COMP_LINE:0:COMP_POINT}" "$current" 2>/dev/null)
    if [[ ${COMPREPLY[0]} == @files ]]; then
        COMPREPLY=()
        compopt -o default
    elif [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/] ]]; then
        compopt -o nospace
    fi
}

complete -F _gpolicy gpolicy

#compdef gpolicy
# zsh completion of gpolicy. Load it with: eval "$(gpolicy completion zsh)"

_gpolicy() {
    local -a lines whole open
    local line value
    lines=("${(@f)$(command $words[1] __complete zsh "${(j: :)words[1,CURRENT]}" "" 2>/dev/null)}")
    if [[ $lines[1] == @files* ]]; then
        compset -P '*[:=]'
        _files
        return
    fi
    for line in $lines; do
        value=${line%%$'\t'*}
        line="${value//:/\\:}:${line#*$'\t'}"
        case $value in
            *[=:/]) open+=("$line") ;;
            *) whole+=("$line") ;;
        esac
    done
    (( $#open )) && _describe gpolicy open -S ''
    (( $#whole )) && _describe gpolicy whole
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _gpolicy "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _gpolicy gpolicy
fi

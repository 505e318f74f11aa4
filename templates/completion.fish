# fish completion of gpolicy. Load it with: gpolicy completion fish | source

function __gpolicy_complete
    set -l current (commandline -ct)
    set -l lines (gpolicy __complete fish (commandline -cp | string collect) "$current" 2>/dev/null)
    if string match -q '@files*' -- "$lines[1]"
        set -l prefix (string match -r '^.*[:=]' -- $current)
        for path in (__fish_complete_path (string replace -r '^.*[:=]' '' -- $current))
            printf '%s%s\n' "$prefix" $path
        end
    else
        string join \n -- $lines
    end
end

complete -c gpolicy -f -a '(__gpolicy_complete)'

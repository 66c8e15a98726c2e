# Reads what `llvm-cov show` says of one file, as "  LINE|  COUNT|SOURCE", and prints each block that
# was entered at most `most` times and has no mark at its own indentation. Of a file of which nothing
# was executed it says nothing: the simulator has another in its place, or nothing to do with it.

function indent(text) {
    match(text, /^ */)
    return RLENGTH
}

# The number that llvm-cov shortens: 1.23M.
function number(text) {
    if (text ~ /k$/) return text * 1000
    if (text ~ /M$/) return text * 1000000
    if (text ~ /[GTE]$/) return text * 1000000000
    return text + 0
}

/^ *[0-9]+\|/ {
    split($0, part, "|")
    n++
    line[n] = part[1] + 0
    counted[n] = part[2] ~ /[0-9]/
    count[n] = number(part[2])
    executed = executed || count[n] > 0
    source[n] = substr($0, length(part[1]) + length(part[2]) + 3)
}

END {
    for (i = 1; executed && i < n; i++) {
        head = source[i]
        # Blocks of a function, not functions themselves.
        if (head !~ /\{ *$/ || head ~ /^ *(pub|fn|async fn|impl|struct|enum|trait|mod|use|const)/)
            continue
        depth = indent(head)
        first = ""
        marked = 0
        for (j = i + 1; j <= n; j++) {
            text = source[j]
            if (text ~ /[^ ]/ && indent(text) <= depth) break
            if (first == "" && counted[j]) { first = count[j]; at = j }
            if (indent(text) == depth + 4 && text ~ /Mark::|No mark/) marked = 1
        }
        if (first != "" && first <= most && !marked) {
            sub(/^ */, "", head)
            printf "%s:%d: %d times: %s\n", file, line[i], first, head
        }
    }
}

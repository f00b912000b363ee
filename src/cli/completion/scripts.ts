/** The completion scripts, by shell. Each asks the program itself for the candidates: `PROGRAM __complete WORDS…`. */
export const SCRIPTS: Readonly<Record<string, (program: string) => string>> = {
  bash: (program) => `# bash completion for ${program}
${functionName(program)}() {
  local IFS=$'\\n'
  COMPREPLY=( $(${program} __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
  [[ "\${COMPREPLY[0]}" == */ ]] && compopt -o nospace
}
complete -o default -o nosort -F ${functionName(program)} ${program}
`,
  zsh: (program) => `#compdef ${program}
${functionName(program)}() {
  local -a found
  found=( \${(f)"$(${program} __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)"} )
  if (( \${#found} )); then compadd -Q -a found; else _files; fi
}
compdef ${functionName(program)} ${program}
`,
  fish: (program) => `# fish completion for ${program}
function ${functionName(program)}
  set -l words (commandline -opc) (commandline -ct)
  ${program} __complete $words[2..-1] 2>/dev/null
end
complete -c ${program} -a '(${functionName(program)})'
`,
  // kubectl runs it with the words after the name of the plug-in, and reads candidates as Cobra writes them: the last line says
  // whether file names (0), nothing else (4), or nothing else and no space (6) may follow.
  kubectl: (program) => `#!/bin/sh
# Completion of kubectl archaware: save it as kubectl_complete-archaware on the PATH, executable
found=$(${program} __complete "$@" 2>/dev/null)
case $found in
  '') echo :0 ;;
  */) printf '%s\\n:6\\n' "$found" ;;
  *) printf '%s\\n:4\\n' "$found" ;;
esac
`,
};

function functionName(program: string): string {
  return `_${program.replaceAll(/\W/g, '_')}_complete`;
}

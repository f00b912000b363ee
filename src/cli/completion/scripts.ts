/** The completion scripts, by shell. Each asks the program itself for the candidates: `PROGRAM __complete WORDS…`. */
export const SCRIPTS: Readonly<Record<string, (program: string) => string>> = {
  bash: (program) => `# bash completion for ${program}
${functionName(program)}() {
  local IFS=$'\\n'
  COMPREPLY=( $(${program} __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
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
};

function functionName(program: string): string {
  return `_${program.replaceAll(/\W/g, '_')}_complete`;
}

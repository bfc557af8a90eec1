/** Whether a name in a policy is a pattern. The name of a tool has no `*`. */
export function isPattern(name: string): boolean {
  return name.includes('*')
}

/** Whether a pattern matches every name. */
export function isAnyName(name: string): boolean {
  return /^\*+$/.test(name)
}

/** Whether a tool name matches a name or pattern of a policy. `*` stands for any characters, also for none. */
export function matchesName(pattern: string, toolName: string): boolean {
  if (!isPattern(pattern)) return pattern === toolName
  const [head = '', ...rest] = pattern.split('*')
  const tail = rest.pop() ?? ''
  if (toolName.length < head.length + tail.length) return false
  if (!toolName.startsWith(head) || !toolName.endsWith(tail)) return false
  const end = toolName.length - tail.length
  let position = head.length
  for (const part of rest) {
    const found = toolName.indexOf(part, position)
    if (found === -1 || found + part.length > end) return false
    position = found + part.length
  }
  return true
}

/** Returns the most specific pattern that matches a tool: the one with the most characters besides `*`. Throws if there are two. */
export function findPattern(names: readonly string[], toolName: string): string | undefined {
  const [first, second] = names
    .filter((name) => isPattern(name) && matchesName(name, toolName))
    .toSorted((one, other) => specificity(other) - specificity(one))
  if (first !== undefined && second !== undefined && specificity(first) === specificity(second))
    throw new TypeError(
      `The patterns ${first} and ${second} of \`approvals\` are equally specific, and both match the tool ${toolName}. Add a verdict for ${toolName}.`,
    )
  return first
}

function specificity(pattern: string): number {
  return pattern.replaceAll('*', '').length
}

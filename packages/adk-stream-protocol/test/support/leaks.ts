/** What must never be in a response: stacks, paths of the machine, and names of what is behind the bridge. */
const LEAKS: readonly RegExp[] = [
  /\bat (?:async )?[\w.<>]+ \(/,
  /\bat (?:file:\/\/)?\/\S+:\d+:\d+/,
  /node_modules/,
  /\/(?:work|home|usr|tmp|root)\//,
  /\.(?:ts|js|mjs):\d+/,
  /(?:Type|Syntax|Range|Reference|Zod)Error/,
  /SQLITE_|libsql/i,
]

/** Returns everything in a response body that reveals internals of the server (ER1). */
export function findLeaks(body: string): string[] {
  return LEAKS.flatMap((leak) => leak.exec(body)?.[0] ?? [])
}

/** The output of a command. */
export interface CommandOutput {
  /** Resolves when the output accepts more text. */
  readonly print: (text: string) => void | Promise<void>
  readonly printError: (text: string) => void
}

/** Runs a command. Prints its usage if it returns undefined. Returns the exit code. */
export async function runCommand(
  { usage, args }: { readonly usage: string; readonly args: readonly string[] },
  { print, printError }: CommandOutput,
  run: () => Promise<number | undefined>,
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    await print(usage)
    return 0
  }
  try {
    const code = await run()
    if (code !== undefined) return code
    printError(usage)
  } catch (error) {
    printError(error instanceof Error ? error.message : String(error))
  }
  return 2
}

import { readFile } from 'node:fs/promises'

import { z } from 'zod'

import type { CommandOutput } from '../shared/command.ts'
import { suggestName } from '../shared/suggest-name.ts'

const USAGE = `Usage: adk-stream-protocol <command>

  dev               opens a page on an agent, and loads the agent again when a file is saved
  serve             serves an agent in production, for a page of your own
  check             loads an agent and lists its tools, which of them need approval, and what is wrong
  conform           tests any chat backend with tool approval from outside, with the client of its page
  doctor            lists what waits in a database and why, and what to do
  audit             exports and verifies the audit record
  retention         removes old chats and audit entries
  delete-principal  deletes the data of a principal

  --help            explains a command: adk-stream-protocol doctor --help
  --version         prints the version`

type Command = (args: string[], output: CommandOutput) => Promise<number>

/** Each command is loaded when it runs: those for databases import ADK, which `check` must not, and which takes a second. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  dev: async () => (await import('../dev/dev-command.ts')).runDevCommand,
  serve: async () => (await import('../dev/serve-command.ts')).runServeCommand,
  check: async () => (await import('../dev/check-command.ts')).runCheckCommand,
  conform: async () => (await import('../conform/conform-command.ts')).runConformCommand,
  doctor: async () => (await import('../store/doctor-command.ts')).runDoctorCommand,
  audit: async () => (await import('../store/commands.ts')).runAuditCommand,
  retention: async () => (await import('../store/commands.ts')).runRetentionCommand,
  'delete-principal': async () => (await import('../store/commands.ts')).runRetentionCommand,
}

/** Runs the command line of the package. Returns the exit code. */
export async function runCli(args: string[], output: CommandOutput): Promise<number> {
  const [name = ''] = args
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (load) return (await load())(args, output)
  if (name === '--version' || name === '-v') {
    const manifest = await readFile(new URL('../../package.json', import.meta.url), 'utf8')
    await output.print(z.object({ version: z.string() }).parse(JSON.parse(manifest)).version)
    return 0
  }
  if (name === '--help' || name === '-h' || name === 'help') {
    await output.print(USAGE)
    return 0
  }
  if (name !== '')
    output.printError(
      `There is no command \`${name}\`.${suggestName(name, Object.keys(COMMANDS))}\n`,
    )
  output.printError(USAGE)
  return 2
}

import { readFile } from 'node:fs/promises'

import { z } from 'zod'

import { suggestName } from '../shared/suggest-name.ts'
import type { CommandOutput } from './commands.ts'
import { runAuditCommand, runRetentionCommand } from './commands.ts'
import { runDoctorCommand } from './doctor-command.ts'

const USAGE = `Usage: adk-stream-protocol <command>

  doctor            lists what waits in a database and why, and what to do
  audit             exports and verifies the audit record
  retention         removes old chats and audit entries
  delete-principal  deletes the data of a principal

  --help            explains a command: adk-stream-protocol doctor --help
  --version         prints the version`

const COMMANDS: Readonly<Record<string, typeof runAuditCommand>> = {
  doctor: runDoctorCommand,
  audit: runAuditCommand,
  retention: runRetentionCommand,
  'delete-principal': runRetentionCommand,
}

/** Runs the command line of the package. Returns the exit code. */
export async function runCli(args: string[], output: CommandOutput): Promise<number> {
  const [name = ''] = args
  const run = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (run) return run(args, output)
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

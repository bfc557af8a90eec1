#!/usr/bin/env node
import { once } from 'node:events'

import { runAuditCommand, runRetentionCommand } from '../store/commands.ts'
import { runDoctorCommand } from '../store/doctor-command.ts'

const args = process.argv.slice(2)
const commands: Readonly<Record<string, typeof runAuditCommand>> = {
  doctor: runDoctorCommand,
  retention: runRetentionCommand,
  'delete-principal': runRetentionCommand,
}
const run = commands[args[0] ?? ''] ?? runAuditCommand

process.exitCode = await run(args, {
  print: async (line) => {
    // Wait if the reader of stdout is slower than the database.
    if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain')
  },
  printError: (line) => process.stderr.write(`${line}\n`),
})
